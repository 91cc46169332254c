package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
)

// volumeCalls is how many calls of one driver the Manager waits for at once.
// While as many abandoned calls have not returned, it makes no new ones.
const volumeCalls = 8

// A driver is a volume driver and what is known of it. What is not atomic is
// guarded by the Manager's lock.
type driver struct {
	VolumeDriver
	name    string
	kind    string // empty unless it is a VolumeKinder
	timeout time.Duration
	turn    chan struct{} // to probe
	// hanging counts the calls that were given up and have not returned.
	hanging atomic.Int64
	// missing is why the last probe failed.
	missing error
}

// A holding is what one container has of volumes, from before the first is
// mounted until the last is unmounted. It may outlive the container, and also
// the daemon, because it is a file in Options.Dir, too. It is guarded by the
// Manager's lock.
type holding struct {
	guid      string
	volumes   []*volume
	releasing bool // the container is gone, and the volumes are being unmounted
	attempts  int  // to unmount all that failed
}

// A volume is one of a holding.
type volume struct {
	executor.VolumeMount
	kind   string        // of the driver that was asked to mount it
	driver *driver       // nil if this cell does not have it any more
	turn   chan struct{} // to mount and unmount
	// asked says that the driver may have been asked to mount it. Who has the turn
	// guards it.
	asked bool
	err   error // of the last Unmount
}

// A HeldVolume is a volume of a container, or one that a deleted container has
// left mounted.
type HeldVolume struct {
	GUID   string
	Volume executor.VolumeMount
	// Attempts counts the failed attempts to unmount what the container has
	// left, and Err says why the last one failed for this volume.
	Attempts int
	Err      error
}

// Volumes returns the volumes that containers have, and those that could not be
// unmounted yet, sorted by guid.
func (m *Manager) Volumes() []HeldVolume {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []HeldVolume
	for _, guid := range slices.Sorted(maps.Keys(m.holdings)) {
		h := m.holdings[guid]
		for _, v := range h.volumes {
			list = append(list, HeldVolume{guid, v.VolumeMount, h.attempts, v.err})
		}
	}
	return list
}

// WaitingUnmounts is how many volumes of containers that are gone could not be
// unmounted yet; Volumes says why.
func (m *Manager) WaitingUnmounts() int {
	n := 0
	for _, v := range m.Volumes() {
		if v.Err != nil {
			n++
		}
	}
	return n
}

// VolumeDrivers returns the names of the drivers that can mount volumes now,
// sorted: their last probe succeeded, and no call of them hangs.
func (m *Manager) VolumeDrivers() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name, d := range m.drivers {
		if d.missing == nil && d.hanging.Load() == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// errNotProbed is what is known of a driver before its first probe.
var errNotProbed = errors.New("it has not answered yet")

// openVolumes finds the drivers, and what earlier managers have left mounted.
func (m *Manager) openVolumes() error {
	m.drivers, m.holdings = make(map[string]*driver), make(map[string]*holding)
	for name, d := range m.options.Volumes {
		m.drivers[name] = &driver{VolumeDriver: d, name: name, timeout: m.options.VolumeTimeout, turn: make(chan struct{}, 1)}
		if _, probed := d.(VolumeProber); probed {
			m.drivers[name].missing = errNotProbed
		}
		if k, ok := d.(VolumeKinder); ok {
			m.drivers[name].kind = k.Kind()
		}
	}
	if m.options.Dir == "" {
		return nil
	}
	dir := filepath.Join(m.options.Dir, volumesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		guid, whole := strings.CutSuffix(f.Name(), recordSuffix)
		if !whole { // it was being written, so nothing was mounted yet
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		var recorded []recordedVolume
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &recorded)
		}
		if err != nil || !guids.Valid(guid) {
			m.options.Logger.Error("what volumes a container of an earlier run has cannot be read; unmount them by hand and remove the file", "path", path, "error", err)
			continue
		}
		mounts := make([]executor.VolumeMount, len(recorded))
		for i, r := range recorded {
			mounts[i] = r.VolumeMount
		}
		m.holdings[guid] = m.newHolding(guid, mounts)
		for i, v := range m.holdings[guid].volumes {
			v.asked = true
			if kind := recorded[i].Kind; kind != "" && kind != v.kind {
				v.kind, v.driver = kind, nil
			}
		}
	}
	return nil
}

func (m *Manager) newHolding(guid string, mounts []executor.VolumeMount) *holding {
	h := &holding{guid: guid}
	for _, mount := range mounts {
		v := &volume{VolumeMount: mount, driver: m.drivers[mount.Driver], turn: make(chan struct{}, 1)}
		if v.driver != nil {
			v.kind = v.driver.kind
		}
		h.volumes = append(h.volumes, v)
	}
	return h
}

// hold gives volumes to a container, unless one of them is not available.
func (m *Manager) hold(guid string, mounts []executor.VolumeMount) (*holding, error) {
	h := m.newHolding(guid, mounts)
	for i, v := range h.volumes {
		err := m.available(v)
		for _, before := range mounts[:i] {
			if err == nil && sameVolume(before, v.VolumeMount) && before.ContainerDir == v.ContainerDir {
				err = errors.New("it is there twice; name it once")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("volume %s of the driver %q for %s: %w", volumeID(v.VolumeMount), v.Driver, v.ContainerDir, err)
		}
	}
	m.holdings[guid] = h
	return h, nil
}

// available returns why a volume is not available now, or nil.
func (m *Manager) available(v *volume) error {
	if v.driver == nil {
		return fmt.Errorf("this cell has no such driver; it has %q", slices.Sorted(maps.Keys(m.drivers)))
	}
	for _, guid := range slices.Sorted(maps.Keys(m.holdings)) {
		for _, other := range m.holdings[guid].volumes {
			if sameVolume(other.VolumeMount, v.VolumeMount) && other.kind == v.kind && (other.Dedicated != nil || v.Dedicated != nil) {
				return fmt.Errorf("container %q has it, and a dedicated volume is for one container at a time", guid)
			}
		}
	}
	return nil
}

func sameVolume(a, b executor.VolumeMount) bool {
	return a.Driver == b.Driver && volumeID(a) == volumeID(b)
}

// volumeID is what names a volume for its driver.
func volumeID(v executor.VolumeMount) string {
	switch {
	case v.Shared != nil:
		return v.Shared.VolumeID
	case v.Dedicated != nil:
		return v.Dedicated.MounterID
	}
	return ""
}

// mount mounts the volumes of a container from the i-th on, and then fetches what it needs.
func (e *entry) mount(p *preparation, h *holding, i int) {
	if h == nil || i == len(h.volumes) {
		e.fetch(p)
		return
	}
	v := h.volumes[i]
	e.creation = e.manager.submitTo(v.Driver, volumePool, JobMount, e.guid, func(ctx context.Context) func() {
		err := ctx.Err()
		if err == nil {
			err = p.manager.host.Refuse(&p.spec)
		}
		if err == nil && i == 0 {
			err = p.manager.writeRecord(h)
		}
		var path string
		if err == nil {
			path, err = e.manager.mountVolume(ctx, h.guid, v)
		}
		return func() {
			e.creation = nil
			if err != nil || e.stopping {
				e.created(executor.Endpoint{}, err)
				return
			}
			p.volumes = append(p.volumes, executor.Mount{Source: path, Target: v.ContainerDir, Writable: v.Mode == executor.MountReadWrite})
			e.mount(p, h, i+1)
		}
	})
}

func (m *Manager) mountVolume(ctx context.Context, guid string, v *volume) (string, error) {
	var path string
	err := v.driver.call(ctx, v.turn, "mount it", func(ctx context.Context) error {
		v.asked = true
		where, err := v.driver.Mount(ctx, guid, v.VolumeMount)
		if err == nil && !filepath.IsAbs(where) {
			err = fmt.Errorf("it says that the volume is at %q, which is not an absolute path", where)
		}
		if err == nil {
			path = where
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("volume for %s: %w", v.ContainerDir, err)
	}
	return path, nil
}

// unmountVolume has the driver unmount a volume, unless it was never asked to
// mount it: a driver that only counts would take the volume from another
// container.
func (m *Manager) unmountVolume(ctx context.Context, guid string, v *volume) error {
	if v.driver == nil {
		return m.withoutDriver(guid, v)
	}
	return v.driver.call(ctx, v.turn, "unmount it", func(ctx context.Context) error {
		if !v.asked {
			return nil
		}
		return v.driver.Unmount(ctx, guid, v.VolumeMount)
	})
}

// withoutDriver says why a volume of an earlier daemon is still mounted if this
// daemon lacks its driver. It is nil once the operator has removed the record.
func (m *Manager) withoutDriver(guid string, v *volume) error {
	record := m.record(guid)
	if _, err := os.Lstat(record); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	then, now := fmt.Sprintf("%q", v.Driver), "this cell does not have it any more"
	if v.kind != "" {
		then += " (" + v.kind + ")"
	}
	if other := m.drivers[v.Driver]; other != nil {
		now = "this cell has another one of that name"
		if other.kind != "" {
			now += " (" + other.kind + ")"
		}
	}
	return fmt.Errorf("the volume driver %s has mounted it, and %s; start the cell with the driver as it was, or unmount the volume by hand and then remove %s",
		then, now, record)
}

// call does f, which calls the driver, when it has the turn. It returns after
// the timeout or at the end of ctx at the latest, although f may not; until f
// returns it keeps the turn. What f writes may be read only if the error is nil.
func (d *driver) call(ctx context.Context, turn chan struct{}, what string, f func(context.Context) error) error {
	if n := d.hanging.Load(); n >= volumeCalls {
		return fmt.Errorf("the volume driver %q does not answer: %d calls hang", d.name, n)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("the volume driver %q still does not answer an earlier call: %w", d.name, ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		err := f(ctx)
		<-turn
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			err = fmt.Errorf("the volume driver %q cannot %s: %w", d.name, what, err)
		}
		return err
	case <-ctx.Done():
	}
	d.hanging.Add(1)
	go func() { <-done; d.hanging.Add(-1) }()
	return fmt.Errorf("the volume driver %q was asked to %s and has not answered: %w", d.name, what, ctx.Err())
}

// release unmounts what a container has left, the last volume first, and again
// until nothing is left. It calls then after the first attempt, which may be
// nil. The Manager does not wait for a driver to give back anything else.
func (m *Manager) release(guid string, then func()) {
	if then == nil {
		then = func() {}
	}
	h := m.holdings[guid]
	if h == nil || h.releasing {
		then()
		return
	}
	h.releasing = true
	m.unmount(h, len(h.volumes)-1, then)
}

// unmount unmounts the volumes of a holding from the i-th down.
func (m *Manager) unmount(h *holding, i int, then func()) {
	if i < 0 {
		if len(h.volumes) == 0 {
			delete(m.holdings, h.guid)
		} else {
			h.attempts++
			pause := min(firstDeletePause<<min(h.attempts-1, 20), m.options.ReapInterval)
			m.after(pause, func() { m.unmount(h, len(h.volumes)-1, func() {}) })
		}
		then()
		return
	}
	v, last := h.volumes[i], len(h.volumes) == 1
	m.submitTo(v.Driver, volumePool, JobUnmount, h.guid, func(ctx context.Context) func() {
		err := m.unmountVolume(ctx, h.guid, v)
		if err == nil && last {
			err = m.removeRecord(h.guid)
		}
		return func() {
			if v.err = err; err == nil {
				h.volumes = slices.Delete(h.volumes, i, i+1)
			} else {
				m.options.Logger.Error("a volume could not be unmounted; that is tried again", "guid", h.guid, "driver", v.Driver,
					"volume", volumeID(v.VolumeMount), "attempts", h.attempts+1, "error", err)
			}
			m.unmount(h, i-1, then)
		}
	})
}

// clearVolumes tries once to unmount the volumes of all containers but some.
// Nothing else works on them any more.
func (m *Manager) clearVolumes(ctx context.Context, except map[string]bool) (left int, err error) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.holdings))
	m.mu.Unlock()
	all = slices.DeleteFunc(all, func(h *holding) bool { return except[h.guid] })
	var clearing errgroup.Group
	clearing.SetLimit(volumeCalls)
	for _, h := range all {
		clearing.Go(func() error {
			var err error
			for _, v := range slices.Backward(h.volumes) {
				err = errors.Join(err, m.unmountVolume(ctx, h.guid, v))
			}
			if err == nil {
				err = m.removeRecord(h.guid)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if err == nil {
				delete(m.holdings, h.guid)
				return nil
			}
			left++
			return fmt.Errorf("the volumes of container %q: %w", h.guid, err)
		})
	}
	err = clearing.Wait()
	return left, err
}

// probeVolumes asks every driver whether it is in order, in intervals.
func (m *Manager) probeVolumes() {
	for _, name := range slices.Sorted(maps.Keys(m.drivers)) {
		if _, probed := m.drivers[name].VolumeDriver.(VolumeProber); probed {
			m.probeVolume(m.drivers[name])
		}
	}
}

func (m *Manager) probeVolume(d *driver) {
	m.submitTo(d.name, volumeProbePool, JobProbe, "", func(ctx context.Context) func() {
		err := d.call(ctx, d.turn, "say whether it is in order", d.VolumeDriver.(VolumeProber).Probe)
		return func() {
			switch {
			case err != nil && d.missing == nil, err != nil && errors.Is(d.missing, errNotProbed):
				m.options.Logger.Error("a volume driver is out of order; the cell does not offer it meanwhile", "driver", d.name, "error", err)
			case err == nil && d.missing != nil:
				m.options.Logger.Info("a volume driver is in order", "driver", d.name)
			}
			d.missing = err
			m.after(m.options.VolumeInterval, func() { m.probeVolume(d) })
		}
	})
}

// The records of holdings: a file for each container, with a list of its volumes.
const (
	volumesDir   = "volumes"
	recordSuffix = ".json"
)

// A recordedVolume is a volume in a record. Those of an earlier release have no
// kind, and fit every driver of the name.
type recordedVolume struct {
	executor.VolumeMount
	Kind string `json:"driver_kind,omitempty"`
}

func (m *Manager) record(guid string) string {
	return filepath.Join(m.options.Dir, volumesDir, guid+recordSuffix)
}

// writeRecord writes down what a container is about to mount.
func (m *Manager) writeRecord(h *holding) error {
	if m.options.Dir == "" {
		return nil
	}
	recorded := make([]recordedVolume, len(h.volumes))
	for i, v := range h.volumes {
		recorded[i] = recordedVolume{v.VolumeMount, v.kind}
	}
	text, err := json.Marshal(recorded)
	if err != nil {
		return err
	}
	half, err := os.CreateTemp(filepath.Dir(m.record(h.guid)), h.guid+".*")
	if err != nil {
		return err
	}
	_, err = half.Write(text)
	err = errors.Join(err, half.Sync(), half.Close())
	if err == nil {
		err = os.Rename(half.Name(), m.record(h.guid))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(half.Name()))
	}
	return err
}

func (m *Manager) removeRecord(guid string) error {
	if m.options.Dir == "" {
		return nil
	}
	if err := os.Remove(m.record(guid)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
