module github.com/diegosdk/diego

go 1.25.0
