# There and back again, on the doubling program.
when
break dve:2
continue
mark before
reverse-step
rs 3
c
c
reverse-continue
rc
goto #8
last-write y
goto end
last-write y[3, 4]
last-write 0:0x5000, 16
last-write psum:0:0
focus dve
reverse-next
rn
goto before
goto 7ps
goto start
when
goto end
