# conditions, catchpoints, counts, commands, values, spans of time
break dve if S[8] >= 16 and time > 1ps
commands
info semaphores
print x[0, 0:3]
end
catch dma qOut if max(y[0]) == 126
ignore 2 0
break S[6] >= 1
tbreak act:1
info breakpoints
c
c
c
c
info dma
info registers
info events
enable once 1
condition 1
condition 3 x[0, 1] == 1
rc
rc
rc
info breakpoints
checks
delete
continue 1us
