# Every completion of a program on three engines and two queues, one by one.
s
s 5
info engines
si dve
stepi
x/4f 3:0x5000
step 3   # the transfer to y
print y[0:2, ::16]

state
c
