//go:build !cgo

package sqlstore

// classifySQLite is for a driver that can do nothing without cgo, and says so
// when a database is opened.
func classifySQLite(error) (class, string) {
	return permanent, "build with CGO_ENABLED=1 and a C compiler, or use another database"
}

// fromSQLite lets the driver say that itself.
func fromSQLite(error) bool { return true }
