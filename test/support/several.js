/** Runs files of tests one after the other in one process: `node several.js FILE…`. */
for (const file of process.argv.slice(2)) await import(file)
