module github.com/diegosdk/diego

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/google/go-cmp v0.7.0
	github.com/lib/pq v1.12.3
	github.com/mattn/go-sqlite3 v1.14.52
)

require filippo.io/edwards25519 v1.2.0 // indirect
