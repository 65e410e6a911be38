# Who touches a byte, a slice, a semaphore; forwards and back.
why dve
watch 0:0x5000, 4
awatch x[3, 0:4]
watch S[24]
info breakpoints
c
why act
why dve
c
c
rc
delete 2
rc
rc
c
why pe
