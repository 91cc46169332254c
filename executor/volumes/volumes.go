// Package volumes has volume drivers for [manager.Options]. [Local] keeps a
// directory for each volume, [Exports] shows directories that the operator has
// named, and [Plugin] asks a plugin that speaks Docker's volume plugin protocol.
//
// A driver of your own implements [manager.VolumeDriver] and passes the suite of
// package volumetest.
//
// # Concurrent use
//
// All types may be used by any number of goroutines.
package volumes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

var (
	_ manager.VolumeDriver = (*Local)(nil)
	_ manager.VolumeDriver = (*Exports)(nil)
	_ manager.VolumeDriver = (*Plugin)(nil)
	_ manager.VolumeProber = (*Plugin)(nil)
	_ manager.VolumeKinder = (*Local)(nil)
	_ manager.VolumeKinder = (*Exports)(nil)
	_ manager.VolumeKinder = (*Plugin)(nil)
)

// MaxNameBytes is the longest name of a volume.
const MaxNameBytes = 128

// nameOf returns the name of a volume and its configuration. A name is that of
// one directory on every file system: letters and digits of ASCII, and after the
// first also ".", "_" and "-". That is Docker's rule, too.
func nameOf(v executor.VolumeMount) (name, config string, err error) {
	field := "volume_id"
	switch {
	case v.Shared != nil:
		name, config = v.Shared.VolumeID, v.Shared.MountConfig
	case v.Dedicated != nil:
		field, name, config = "mounter_id", v.Dedicated.MounterID, v.Dedicated.MountConfig
	}
	for i, c := range []byte(name) {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return "", "", fmt.Errorf("the %s %.*q is not a name of a volume; use letters, digits, and after the first also . _ and -", field, MaxNameBytes, name)
		}
	}
	if name == "" || len(name) > MaxNameBytes {
		return "", "", fmt.Errorf("the %s has %d bytes; a name of a volume has 1 to %d", field, len(name), MaxNameBytes)
	}
	return name, config, nil
}

// errConfig is for drivers without configuration: nothing is ignored.
var errConfig = errors.New("it has a mount_config, and this driver takes none; leave it out")

func noConfig(config string) error {
	if config != "" && config != "{}" {
		return errConfig
	}
	return nil
}
