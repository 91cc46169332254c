//go:build unix && !linux

package testdb

import "syscall"

func attributes(owner *account) *syscall.SysProcAttr {
	if owner == nil {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(owner.uid), Gid: uint32(owner.gid)}}
}
