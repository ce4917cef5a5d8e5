/** An entry whose thread ends while it loads, without an error. */
process.exit(0)
