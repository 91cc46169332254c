//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// What the image of the host is made of. It is a list of what is shown, not
// of what is hidden: what is not here does not exist in a container.
var (
	// HostPrograms are mounted read-only, or copied where they are links. Tests
	// add to them.
	HostPrograms = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	// hostSettings are copied: files, links and directories of them. None
	// holds a secret.
	hostSettings = []string{
		"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/debian_version",
		"/etc/group", "/etc/host.conf", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/locale.alias", "/etc/localtime", "/etc/magic", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release",
		"/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/profile", "/etc/protocols", "/etc/services",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone",
	}
	hostDirs = []struct {
		path string
		mode fs.FileMode
	}{
		{"/dev", 0o755}, {"/etc", 0o755}, {"/home", 0o755}, {"/mnt", 0o755}, {"/opt", 0o755}, {"/proc", 0o555},
		{"/root", 0o700}, {"/run", 0o755}, {"/srv", 0o755}, {"/sys", 0o555}, {"/tmp", 0o777 | fs.ModeSticky},
		{"/var/cache", 0o755}, {"/var/lib", 0o755}, {"/var/log", 0o755}, {"/var/tmp", 0o777 | fs.ModeSticky},
	}
)

// hostDirectories are those of HostPrograms that are directories.
func hostDirectories() (dirs []string) {
	for _, path := range HostPrograms {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// hostImage makes the part of the host's image that is not mounted.
func (s *images) hostImage(_ context.Context, dir string) error {
	for _, d := range hostDirs {
		if err := os.MkdirAll(filepath.Join(dir, d.path), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(dir, d.path), d.mode); err != nil {
			return err
		}
	}
	for _, path := range HostPrograms {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.IsDir() {
			if err := os.Mkdir(filepath.Join(dir, path), 0o755); err != nil {
				return err
			}
			continue
		}
		if err := copyTree(path, filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	for _, path := range hostSettings {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			return err
		}
		if err := copyTree(path, filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies files that everybody may read, directories and links. What
// is not there is left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case d.Type().IsRegular() && info.Mode().Perm()&0o004 != 0:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, content, info.Mode().Perm())
		}
		return nil
	})
}

// digestOf is a name for the directory of an image.
func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
