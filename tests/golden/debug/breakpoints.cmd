break dve:2
b double.s:20
tb qOut
info breakpoints
c
disassemble dve
c
list
disable 1
c
info queues
info semaphores
delete 2
n
c
run
c
