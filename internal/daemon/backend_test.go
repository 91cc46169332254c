package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/libcontainer"
)

func TestTheBackendThatIsAskedForIsOpened(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenBackend(t.Context(), BackendOptions{Kind: ProcessBackend, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Name != ProcessBackend || b.Isolated || !strings.Contains(b.Why, "NOTHING is isolated") || len(b.Lacks) == 0 {
		t.Errorf("%v, isolated %v, lacks %q", b, b.Isolated, b.Lacks)
	}
	if _, err := os.Stat(filepath.Join(dir, ProcessBackend)); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownBackendIsRefusedWithTheKnownOnes(t *testing.T) {
	_, err := OpenBackend(t.Context(), BackendOptions{Kind: "docker", Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `backend "docker": want one of auto, libcontainer, process`) {
		t.Errorf("%v", err)
	}
}

func TestWhatAnotherBackendHasLeftInTheDirectoryIsEnded(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	b, err := OpenBackend(ctx, BackendOptions{Kind: ProcessBackend, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	exited := make(chan executor.Exit, 1)
	if _, err := b.Create(ctx, executor.ContainerSpec{GUID: "left", RootFS: "host:"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(ctx, "left", executor.ProcessSpec{
		Path: "sleep", Args: []string{"1000"}, User: "root", Env: []executor.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}},
		Exited: func(e executor.Exit) { exited <- e },
	}); err != nil {
		t.Fatal(err)
	}
	if ended, err := ClearBackends(ctx, BackendOptions{Dir: dir}, ProcessBackend); ended != 0 || err != nil {
		t.Errorf("of the backend that is kept %d were ended, %v", ended, err)
	}
	if ended, err := ClearBackends(ctx, BackendOptions{Dir: dir}, RealBackend); ended != 1 || err != nil {
		t.Errorf("%d were ended, %v", ended, err)
	}
	<-exited
	if ended, err := ClearBackends(ctx, BackendOptions{Dir: dir}, RealBackend); ended != 0 || err != nil {
		t.Errorf("another time %d were ended, %v", ended, err)
	}
}

// Without real containers, auto takes processes, and RealBackend fails.
func TestAutoTakesRealContainersWhereTheHostCan(t *testing.T) {
	ctx := t.Context()
	real, realErr := OpenBackend(ctx, BackendOptions{Kind: RealBackend, Dir: t.TempDir()})
	if realErr == nil {
		if left, err := real.List(ctx); err != nil || len(left) > 0 {
			t.Errorf("the trial left %q, %v", left, err)
		}
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	} else if !strings.Contains(realErr.Error(), `ask for the backend "process"`) {
		t.Errorf("%v", realErr)
	}
	b, err := OpenBackend(ctx, BackendOptions{Kind: AutoBackend, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	t.Log(b)
	if b.Isolated != (realErr == nil) {
		t.Errorf("%v, while real containers say %v", b, realErr)
	}
}

func TestAHostThatLacksWhatEveryContainerNeedsIsNotTried(t *testing.T) {
	b := &Backend{ContainerBackend: lacking{feature: executor.FeatureOwnNetwork, why: "no nf_tables"}}
	if err := b.probe(t.Context(), essential); err == nil || err.Error() != "own network: no nf_tables" {
		t.Errorf("%v", err)
	}
	b = &Backend{ContainerBackend: lacking{feature: executor.FeatureDiskLimit, why: "no loop device"}}
	if err := b.probe(t.Context(), essential); err != nil || len(b.Lacks) != 1 || b.Lacks[0] != "disk limit: no loop device" {
		t.Errorf("%v, lacks %q", err, b.Lacks)
	}
}

func TestATrialThatFailsIsAnErrorAndLeavesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		start func(executor.ProcessSpec) error
		want  string
	}{
		"it runs":             {func(p executor.ProcessSpec) error { p.Exited(executor.Exit{}); return nil }, ""},
		"there is no program": {func(executor.ProcessSpec) error { return executor.ErrNoCommand }, ""},
		"it is killed":        {func(p executor.ProcessSpec) error { p.Exited(executor.Exit{Signal: 31}); return nil }, "killed by signal 31"},
		"it cannot start":     {func(executor.ProcessSpec) error { return errors.New("operation not permitted") }, "operation not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &trial{start: tt.start}
			err := try(t.Context(), b, trialSize)
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if b.there {
				t.Error("the container is still there")
			}
		})
	}
}

func TestWhatAnEarlierDaemonLeftIsDeletedIfThereIsNoRoomBesideIt(t *testing.T) {
	full := false
	real := scripted.New(scripted.Options{Fault: func(op scripted.Op, guid string) error {
		if op == scripted.Create && full {
			return errors.New("no space left on device")
		}
		if op == scripted.Delete && guid == "large" {
			full = false
		}
		return nil
	}})
	if _, err := real.Create(t.Context(), executor.ContainerSpec{GUID: "large", RootFS: "host:"}); err != nil {
		t.Fatal(err)
	}
	full = true
	if err := (&Backend{ContainerBackend: real}).tryAfterOthers(t.Context(), ""); err != nil {
		t.Errorf("the trial fails though there is room without what an earlier daemon left: %v", err)
	}
}

func TestWhatContainersWriteLastIsForwarded(t *testing.T) {
	forwarding, written := make(chan struct{}), make(chan string, 1)
	var forwarded string
	b := &Backend{close: func() error {
		<-forwarding
		written <- "last words"
		return errors.New("busy")
	}}
	b.forward(t.Context(), func(ctx context.Context) {
		close(forwarding)
		<-ctx.Done()
		select {
		case forwarded = <-written:
		default:
		}
	})
	if err := b.Close(); err == nil || err.Error() != "busy" {
		t.Errorf("the backend is closed with %v", err)
	}
	if forwarded != "last words" {
		t.Errorf("forwarded is %q", forwarded)
	}
}

// A hoarder sets aside what it deletes, and has no room until that is swept.
type hoarder struct {
	*scripted.Backend
	aside []executor.Leftover
}

func (h *hoarder) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	if guids, err := h.List(ctx); err != nil || len(guids) > 0 || len(h.aside) > 0 {
		return executor.Endpoint{}, errors.Join(errors.New("no space left on device"), err)
	}
	return h.Backend.Create(ctx, spec)
}

func (h *hoarder) Delete(ctx context.Context, guid string) error {
	if guid == "large" {
		h.aside = append(h.aside, executor.Leftover{Path: guid})
		return errors.Join(h.Backend.Delete(ctx, guid), executor.ErrSetAside)
	}
	return h.Backend.Delete(ctx, guid)
}

func (h *hoarder) Aside(context.Context) ([]executor.Leftover, error) { return h.aside, nil }

func (h *hoarder) Sweep(context.Context) ([]executor.Leftover, error) {
	h.aside = nil
	return nil, nil
}

func TestWhatWasSetAsideIsRemovedIfThereIsNoRoomBesideIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		earlier bool // it was set aside before the daemon started
	}{{"by this start", false}, {"by an earlier one", true}} {
		t.Run(tt.name, func(t *testing.T) {
			h := &hoarder{Backend: scripted.New(scripted.Options{})}
			if _, err := h.Create(t.Context(), executor.ContainerSpec{GUID: "large", RootFS: "host:"}); err != nil {
				t.Fatal(err)
			}
			if tt.earlier {
				if err := h.Delete(t.Context(), "large"); !errors.Is(err, executor.ErrSetAside) {
					t.Fatal(err)
				}
			}
			if err := (&Backend{ContainerBackend: h}).tryAfterOthers(t.Context(), ""); err != nil {
				t.Errorf("the trial fails though there is room without what was set aside: %v", err)
			}
		})
	}
}

func TestATrialThatFailsSaysWhyNoRoomCouldBeMade(t *testing.T) {
	real := scripted.New(scripted.Options{Fault: func(op scripted.Op, guid string) error {
		switch {
		case op == scripted.Create && guid != "large":
			return errors.New("no space left on device")
		case op == scripted.Delete:
			return errors.New("read-only file system")
		}
		return nil
	}})
	if _, err := real.Create(t.Context(), executor.ContainerSpec{GUID: "large", RootFS: "host:"}); err != nil {
		t.Fatal(err)
	}
	err := (&Backend{ContainerBackend: real}).tryAfterOthers(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhereOnlyContainersWithSharedIDsCanBeMadeTheyShareThemAndTheReasonIsSaid(t *testing.T) {
	refused := errors.New("mount proc: operation not permitted")
	for name, tt := range map[string]struct {
		asked bool
		fails func(shared bool) error
		want  error
		tries int
		lacks string
	}{
		"own ids":          {false, func(bool) error { return nil }, nil, 1, "uids and gids of its own: Options.SharedIDs is set"},
		"only shared ones": {false, func(shared bool) error { return map[bool]error{false: refused}[shared] }, nil, 2, "uids and gids of its own: a container with them could not be made: mount proc: operation not permitted"},
		"none":             {false, func(bool) error { return refused }, refused, 2, ""},
		"asked to share":   {true, func(bool) error { return refused }, refused, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			b, err := openReal(t.Context(), BackendOptions{Real: libcontainer.Options{SharedIDs: tt.asked}}, func(_ context.Context, o BackendOptions) (*Backend, error) {
				tries++
				if err := tt.fails(o.Real.SharedIDs); err != nil {
					return nil, err
				}
				return &Backend{SharedIDs: o.Real.SharedIDs, Lacks: []string{"uids and gids of its own: Options.SharedIDs is set"}}, nil
			})
			if !errors.Is(err, tt.want) || tries != tt.tries {
				t.Errorf("%v after %d tries, want %v after %d", err, tries, tt.want, tt.tries)
			}
			if err == nil && (b.Lacks[0] != tt.lacks || b.SharedIDs != (tries == 2)) {
				t.Errorf("shared %v, lacks %q", b.SharedIDs, b.Lacks)
			}
		})
	}
}

// A lacking backend reports that its host lacks a feature.
type lacking struct {
	executor.ContainerBackend
	feature executor.FeatureName
	why     string
}

func (l lacking) Probe(context.Context) (executor.Host, error) {
	return executor.Host{Features: []executor.Feature{{Name: executor.FeatureRootFS}, {Name: l.feature, Missing: l.why}}}, nil
}

// A trial backend knows one container.
type trial struct {
	executor.ContainerBackend
	start func(executor.ProcessSpec) error
	there bool
}

func (b *trial) Create(context.Context, executor.ContainerSpec) (executor.Endpoint, error) {
	b.there = true
	return executor.Endpoint{}, nil
}

func (b *trial) Start(_ context.Context, _ string, p executor.ProcessSpec) (executor.Process, error) {
	return nil, b.start(p)
}

func (b *trial) Delete(context.Context, string) error {
	b.there = false
	return nil
}

func TestWhatAnEarlierDaemonDownloadedIsDeletedIfThereIsNoRoomBesideIt(t *testing.T) {
	for _, name := range []string{"cache", "cache.former"} {
		dir := t.TempDir()
		kept := filepath.Join(dir, name, "directory-1", "file")
		if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		real := scripted.New(scripted.Options{Fault: func(op scripted.Op, guid string) error {
			if _, missing := os.Stat(kept); op == scripted.Create && missing == nil {
				return errors.New("no space left on device")
			}
			return nil
		}})
		if err := (&Backend{ContainerBackend: real}).tryAfterOthers(t.Context(), filepath.Join(dir, "cache")); err != nil {
			t.Errorf("%s: the trial fails though there is room without it: %v", name, err)
		}
	}
}
