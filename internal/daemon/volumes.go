package daemon

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/volumes"
)

// Volumes are the settings of the volume drivers of a cell, for embedding.
type Volumes struct {
	VolumeRoot            string            `name:"volume_root" help:"directory with a directory for each volume of the driver \"local\", which is made when it is first mounted; without it there is no such driver"`
	VolumeExports         map[string]string `name:"volume_exports" help:"directories of this host that containers may mount, as data=/srv/data: the volumes of the driver \"export\""`
	VolumeExportsWritable []string          `name:"volume_exports_writable" help:"names from volume_exports that containers may mount for writing"`
	VolumePlugins         map[string]string `name:"volume_plugins" help:"drivers that are plugins with Docker's volume plugin protocol, and their sockets, as nfs=/run/docker/plugins/nfs.sock"`
	VolumeTimeout         time.Duration     `name:"volume_timeout" option:"manager.Options.VolumeTimeout" default:"30s" range:"1s..1h" help:"how long a volume driver may take to mount or unmount a volume"`
	VolumeInterval        time.Duration     `name:"volume_interval" option:"manager.Options.VolumeInterval" default:"10s" range:"100ms..1h" help:"between two probes of each plugin; while they fail, the cell does not offer it"`
}

// CheckVolumes is for the Check method of settings that embed Volumes.
func (s *Volumes) CheckVolumes(report func(name, want string)) {
	for _, name := range s.VolumeExportsWritable {
		if _, known := s.VolumeExports[name]; !known {
			report("volume_exports_writable", fmt.Sprintf("want names from volume_exports; %q is none", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.VolumePlugins)) {
		if name == localDriver || name == exportDriver {
			report("volume_plugins", fmt.Sprintf("want another name than %q, which is that of a driver of this cell", name))
		} else if !filepath.IsAbs(s.VolumePlugins[name]) {
			report("volume_plugins", fmt.Sprintf("want the absolute path of a socket for %q", name))
		}
	}
}

// Manager sets the options of a manager that the settings describe, except for
// the drivers.
func (s *Volumes) Manager(o *manager.Options) { apply(s, o) }

// The names of the drivers that are not plugins.
const (
	localDriver  = "local"
	exportDriver = "export"
)

// checkPlaces is an error if a container could replace what another driver
// mounts: by a link to elsewhere, say. Exports among each other are for
// volumes.NewExports.
func (s *Volumes) checkPlaces() error {
	if s.VolumeRoot == "" {
		return nil
	}
	root, err := filepath.EvalSymlinks(s.VolumeRoot)
	if err != nil {
		return fmt.Errorf("volume_root: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.VolumeExports)) {
		path, err := filepath.EvalSymlinks(s.VolumeExports[name])
		if err != nil {
			return fmt.Errorf("volume_exports: %w", err)
		}
		if below, err := filepath.Rel(path, root); err == nil && filepath.IsLocal(below) && slices.Contains(s.VolumeExportsWritable, name) {
			return fmt.Errorf("volume_root: %s lies in %s, which containers may change by the export %q; move it, or export that read-only", root, path, name)
		}
		if below, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(below) && filepath.Dir(below) != "." {
			return fmt.Errorf("volume_exports: the export %q, %s, lies in a volume of %s, which containers may change; export another directory", name, path, root)
		}
	}
	return nil
}

// Drivers are those that the settings name. Any number of cells of a host may share
// them.
func (s *Volumes) Drivers() (map[string]manager.VolumeDriver, error) {
	drivers := map[string]manager.VolumeDriver{}
	if s.VolumeRoot != "" {
		local, err := volumes.NewLocal(s.VolumeRoot)
		if err != nil {
			return nil, fmt.Errorf("volume_root: %w", err)
		}
		drivers[localDriver] = local
	}
	if len(s.VolumeExports) > 0 {
		exports := map[string]volumes.Export{}
		for name, path := range s.VolumeExports {
			exports[name] = volumes.Export{Path: path, Writable: slices.Contains(s.VolumeExportsWritable, name)}
		}
		export, err := volumes.NewExports(exports)
		if err != nil {
			return nil, fmt.Errorf("volume_exports: %w", err)
		}
		drivers[exportDriver] = export
	}
	if err := s.checkPlaces(); err != nil {
		return nil, err
	}
	for name, socket := range s.VolumePlugins {
		drivers[name] = volumes.NewPlugin(socket)
	}
	return drivers, nil
}
