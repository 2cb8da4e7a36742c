module bench/measure

go 1.25
