break dve:2
continue
step
state
disas
list
