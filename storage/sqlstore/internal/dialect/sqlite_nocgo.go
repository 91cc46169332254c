//go:build !cgo

package dialect

// classifySQLite is for a driver that can do nothing without cgo, and says so
// when a database is opened.
func classifySQLite(error) (Class, string) {
	return Permanent, "build with CGO_ENABLED=1 and a C compiler, or use another database"
}

// fromSQLite lets the driver say that itself.
func fromSQLite(error) bool { return true }
