package testdb

import "syscall"

// dieWithParent has the kernel end the program when the test process is gone,
// however that went. PostgreSQL's SIGQUIT takes its children with it, and
// MariaDB has none.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGQUIT
	return attr
}
