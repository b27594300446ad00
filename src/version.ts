/** As in `package.json`. */
export const VERSION = '1.1.0'
