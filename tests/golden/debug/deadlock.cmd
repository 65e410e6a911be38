step 6
info engines
continue
