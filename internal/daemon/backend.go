package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/internal/parallel"
)

// The kinds of backends that a cell may ask for.
const (
	// AutoBackend is real containers if this host can run one, and plain
	// processes otherwise.
	AutoBackend = "auto"
	// RealBackend is real containers or an error.
	RealBackend = "libcontainer"
	// ProcessBackend is plain processes, which nothing isolates.
	ProcessBackend = "process"
)

// BackendKinds are what BackendOptions.Kind may be.
var BackendKinds = []string{AutoBackend, RealBackend, ProcessBackend}

// BackendOptions say where containers are to run. Zero values mean the
// defaults of the backends.
type BackendOptions struct {
	// Kind is one of BackendKinds.
	Kind string
	// Dir is the cell's own. The containers lie in a directory below it that
	// has the name of the backend.
	Dir string
	// Real and Plain are for real containers and for plain processes. Their Dir is
	// set by OpenBackend.
	Real  libcontainer.Options
	Plain process.Options
	// untried leaves the trial out.
	untried bool
}

// A Backend is the one that was chosen.
type Backend struct {
	executor.ContainerBackend
	// Name is RealBackend or ProcessBackend.
	Name string
	// Isolated is true for real containers.
	Isolated bool
	// Why is a line that says why this backend was chosen.
	Why string
	// SharedIDs is true if containers share the host's uids and gids, because
	// the settings ask for that or because a container with its own ids could
	// not be made.
	SharedIDs bool
	// Lacks lists the features that this host does not have, grouped by
	// reason.
	Lacks []string
	close func() error
	dir   *Dir // of the cell, if Cell.Open has opened it
}

// Close releases what the backend holds on the host.
func (b *Backend) Close() error { return b.close() }

func (b *Backend) String() string { return b.Name + ": " + b.Why }

// essential are the features that every container needs.
var essential = []executor.FeatureName{
	executor.FeatureRootFS, executor.FeatureOwnNetwork, executor.FeatureMemoryLimit, executor.FeaturePIDLimit,
}

// OpenBackend opens the backend that o asks for. It does not trust a probe:
// before it chooses real containers, it makes one, starts a process in it and
// deletes it. An error for RealBackend says how to do without real containers.
func OpenBackend(ctx context.Context, o BackendOptions) (*Backend, error) {
	switch o.Kind {
	case ProcessBackend:
		return openProcess(ctx, o, "it was asked for; NOTHING is isolated")
	case AutoBackend:
		b, err := openReal(ctx, o, openIsolated)
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		return openProcess(ctx, o, fmt.Sprintf("NOTHING is isolated, as this host cannot run real containers: %v; diegoctl cell doctor says more", err))
	case RealBackend:
		b, err := openReal(ctx, o, openIsolated)
		if err != nil {
			return nil, fmt.Errorf("no real containers on this host: %w; mend that (diegoctl cell doctor says more), or ask for the backend %q, which isolates nothing", err, ProcessBackend)
		}
		return b, nil
	}
	return nil, fmt.Errorf("backend %q: want one of %s", o.Kind, strings.Join(BackendKinds, ", "))
}

// ClearBackends ends the containers that earlier processes have left in a
// cell's directory and returns how many it ended. It leaves those of the
// backend keep, which clears its own. The directory must belong to this
// process. o has what the backends are opened with; its Kind does not count.
func ClearBackends(ctx context.Context, o BackendOptions, keep string) (ended int, err error) {
	for _, kind := range []string{RealBackend, ProcessBackend} {
		dir := filepath.Join(o.Dir, kind)
		if _, missing := os.Stat(dir); missing != nil || kind == keep {
			continue
		}
		o.Kind, o.untried = kind, true
		n, left := clearBackend(ctx, o)
		if ended += n; left != nil {
			err = errors.Join(err, fmt.Errorf("containers may be left in %s: %w", dir, left))
		}
	}
	return ended, err
}

func clearBackend(ctx context.Context, o BackendOptions) (ended int, err error) {
	b, err := OpenBackend(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if ended, err = b.deleteAll(ctx); err != nil {
		return ended, err
	}
	_, err = b.sweep(ctx) // nobody opens this backend again
	return ended, err
}

// sweep removes what was set aside, and reports whether there was anything.
func (b *Backend) sweep(ctx context.Context) (swept bool, err error) {
	s, can := b.ContainerBackend.(interface {
		executor.Weigher
		executor.Sweeper
	})
	if !can {
		return false, nil
	}
	aside, err := s.Aside(ctx)
	if err != nil || len(aside) == 0 {
		return false, err
	}
	_, err = s.Sweep(ctx)
	return true, err
}

// deleteTime bounds the deletion of a container whose processes may not die,
// because a volume hangs.
const deleteTime = time.Minute

func (b *Backend) deleteAll(ctx context.Context) (ended int, err error) {
	guids, err := b.List(ctx)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(guids))
	parallel.Each(len(guids), manager.DefaultDeleteWorkers, func(i int) {
		deleting, cancel := context.WithTimeout(ctx, deleteTime)
		defer cancel()
		// Nothing runs any more in a container that was set aside.
		if err := b.Delete(deleting, guids[i]); !errors.Is(err, executor.ErrSetAside) {
			errs[i] = err
		}
	})
	for _, err := range errs {
		if err == nil {
			ended++
		}
	}
	return ended, errors.Join(errs...)
}

// openReal opens a backend whose containers have their own ids, or share the
// host's ids if no others can be made.
func openReal(ctx context.Context, o BackendOptions, open func(context.Context, BackendOptions) (*Backend, error)) (*Backend, error) {
	b, err := open(ctx, o)
	if err == nil || o.Real.SharedIDs || ctx.Err() != nil {
		return b, err
	}
	o.Real.SharedIDs = true
	b, sharedErr := open(ctx, o)
	if sharedErr != nil {
		return nil, err
	}
	for i, l := range b.Lacks {
		if strings.HasPrefix(l, string(executor.FeatureOwnIDs)+":") {
			b.Lacks[i] = fmt.Sprintf("%s: %s", executor.FeatureOwnIDs, noOwnIDs(err))
		}
	}
	return b, nil
}

// noOwnIDs is the reason why a container with its own ids could not be made.
func noOwnIDs(err error) string {
	return fmt.Sprintf("a container with them could not be made: %v", err)
}

func openIsolated(ctx context.Context, o BackendOptions) (*Backend, error) {
	o.Real.Dir = filepath.Join(o.Dir, RealBackend)
	real, err := libcontainer.New(o.Real)
	if err != nil {
		return nil, err
	}
	b := &Backend{ContainerBackend: real, Name: RealBackend, Isolated: true, SharedIDs: o.Real.SharedIDs, close: real.Close}
	err = b.probe(ctx, essential)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", executor.ErrUnsupported, err)
	case !o.untried:
		err = b.tryAfterOthers(ctx, filepath.Join(o.Dir, managerDir, "cache"))
	}
	if err != nil {
		return nil, errors.Join(err, real.Close())
	}
	b.Why = "one was made and started on this host"
	return b, nil
}

func openProcess(ctx context.Context, o BackendOptions, why string) (*Backend, error) {
	o.Plain.Dir = filepath.Join(o.Dir, ProcessBackend)
	plain, err := process.New(o.Plain)
	if err != nil {
		return nil, err
	}
	b := &Backend{ContainerBackend: plain, Name: ProcessBackend, Why: why, close: func() error { return nil }}
	return b, b.probe(ctx, nil)
}

// probe fills Lacks. It fails if an essential feature is missing.
func (b *Backend) probe(ctx context.Context, needed []executor.FeatureName) error {
	host, err := b.Probe(ctx)
	if err != nil {
		return err
	}
	var reasons []string // in the order in which they come
	names := map[string][]string{}
	for _, f := range host.Features {
		if f.Missing == "" {
			continue
		}
		if names[f.Missing] == nil {
			reasons = append(reasons, f.Missing)
		}
		names[f.Missing] = append(names[f.Missing], string(f.Name))
	}
	for _, why := range reasons {
		b.Lacks = append(b.Lacks, strings.Join(names[why], ", ")+": "+why)
	}
	for _, name := range needed {
		for _, f := range host.Features {
			if f.Name == name && f.Missing != "" {
				return fmt.Errorf("%s: %s", f.Name, f.Missing)
			}
		}
	}
	return nil
}

// trialTime is how long the trial container may take.
const trialTime = 20 * time.Second

// trialSize is what a trial container has.
var trialSize = executor.Resources{MemoryMB: 64, MaxPIDs: 32}

// managerDir is the directory of the cell's manager in that of the cell.
const managerDir = "manager"

// tryAfterOthers tries a container. If that fails, it removes what earlier
// daemons have left, which may take all the room, and tries once more: containers,
// what was set aside, perhaps by an earlier attempt to start, and downloads. Nothing
// of that is used any more, and only a daemon that starts removes it.
func (b *Backend) tryAfterOthers(ctx context.Context, downloads string) error {
	err := try(ctx, b, trialSize)
	if err == nil || ctx.Err() != nil {
		return err
	}
	deleted, deleteErr := b.deleteAll(ctx)
	swept, sweepErr := b.sweep(ctx)
	for _, dir := range []string{downloads, downloads + ".former"} {
		if _, missing := os.Stat(dir); missing != nil {
			continue
		}
		removeErr := os.RemoveAll(dir)
		swept, sweepErr = swept || removeErr == nil, errors.Join(sweepErr, removeErr)
	}
	if deleted > 0 || swept {
		if err = try(ctx, b, trialSize); err == nil {
			return nil
		}
	}
	if left := errors.Join(deleteErr, sweepErr); left != nil {
		err = fmt.Errorf("%w; what earlier daemons have left cannot be removed: %w", err, left)
	}
	return err
}

// try makes a container, runs the smallest possible program in it and deletes
// it. Kernels and sandboxes forbid things that a probe does not see.
func try(ctx context.Context, b executor.ContainerBackend, r executor.Resources) (err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	const guid = "diego-trial"
	if _, err := b.Create(ctx, executor.ContainerSpec{
		GUID: guid, RootFS: "host:", CPUWeight: executor.MaxCPUWeight,
		Resources: r,
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Delete(context.WithoutCancel(ctx), guid)) }()
	exited := make(chan executor.Exit, 1)
	_, err = b.Start(ctx, guid, executor.ProcessSpec{
		Path: "true", User: "root", Env: []executor.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}},
		Exited: func(e executor.Exit) { exited <- e },
	})
	if errors.Is(err, executor.ErrNoCommand) {
		return nil // the container was made, and that is what is tried here
	}
	if err != nil {
		return err
	}
	select {
	case e := <-exited:
		if !e.Success() {
			return fmt.Errorf("a trial container failed: %v", e)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a trial container was not done in time: %w", ctx.Err())
	}
}
