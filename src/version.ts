/** The version of the program and of its interface; `package.json` has the same. */
export const VERSION = '1.1.0-dev'
