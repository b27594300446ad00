/** The version of program and interface; `package.json` repeats it. */
export const VERSION = '1.1.0-dev'
