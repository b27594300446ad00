/** What `import … from 'password-entry-service'` gives. */
export * from './embedding/embedded-service.ts'
