package transfer

import "syscall"

// nearlyFull reports whether less than a twentieth of the blocks or inodes of a
// directory's file system is free.
func nearlyFull(dir string) bool {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return false
	}
	return s.Bavail < s.Blocks/20 || s.Ffree < s.Files/20
}
