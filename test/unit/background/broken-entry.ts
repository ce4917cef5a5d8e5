/** An entry that cannot be loaded. */
throw new Error('this entry does not load')
