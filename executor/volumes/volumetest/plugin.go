package volumetest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// A Plugin is a small plugin that follows Docker's published volume plugin
// protocol, for tests of code that calls plugins. Its volumes are directories. It is
// no example of a good plugin: it knows what is mounted only while it runs.
//
// Its methods may be called concurrently.
type Plugin struct {
	// Socket is where it listens.
	Socket string

	dir    string
	server *http.Server

	mu      sync.Mutex
	volumes map[string]*pluginVolume
	broken  string
}

type pluginVolume struct {
	options map[string]string
	ids     []string // of its mounts
}

// StartPlugin starts a plugin that keeps its volumes in dir and listens at a
// socket there. It ends with the test.
func StartPlugin(t testing.TB, dir string) *Plugin {
	t.Helper()
	p := &Plugin{Socket: filepath.Join(dir, "plugin.sock"), dir: dir, volumes: map[string]*pluginVolume{}}
	p.Start(t)
	t.Cleanup(p.Stop)
	return p
}

// Start lets a plugin that was stopped listen again.
func (p *Plugin) Start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve)}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server)
}

// Stop ends the plugin. Nothing listens at the socket any more.
func (p *Plugin) Stop() { _ = p.server.Close() }

// Break makes the plugin refuse every call of a volume for a reason, and "" ends
// that.
func (p *Plugin) Break(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = why
}

// Mounted returns the ids of all mounts, sorted.
func (p *Plugin) Mounted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for _, v := range p.volumes {
		ids = append(ids, v.ids...)
	}
	slices.Sort(ids)
	return ids
}

// Options returns the options with which a volume was created.
func (p *Plugin) Options(name string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.volumes[name]; v != nil {
		return v.options
	}
	return nil
}

func (p *Plugin) serve(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Name, ID string
		Opts     map[string]string
	}
	answer := map[string]any{"Err": ""}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil && r.URL.Path != "/Plugin.Activate" {
		answer["Err"] = err.Error()
	} else if err := p.answer(r.URL.Path, request.Name, request.ID, request.Opts, answer); err != nil {
		answer["Err"] = err.Error()
		w.WriteHeader(http.StatusInternalServerError)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *Plugin) answer(method, name, id string, options map[string]string, answer map[string]any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if method == "/Plugin.Activate" {
		answer["Implements"] = []string{"VolumeDriver"}
		return nil
	}
	v, dir := p.volumes[name], filepath.Join(p.dir, filepath.Base(name))
	switch {
	case p.broken != "":
		return fmt.Errorf("%s", p.broken)
	case method == "/VolumeDriver.Create" && v != nil:
		return fmt.Errorf("%s is there already", name)
	case method == "/VolumeDriver.Create":
		p.volumes[name] = &pluginVolume{options: options}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return os.Chmod(dir, 0o777) // with any umask
	case method == "/VolumeDriver.List":
		list := []map[string]string{}
		for name := range p.volumes {
			list = append(list, map[string]string{"Name": name})
		}
		answer["Volumes"] = list
	case v == nil:
		return fmt.Errorf("there is no %s", name)
	case method == "/VolumeDriver.Get":
		found := map[string]string{"Name": name}
		if len(v.ids) > 0 {
			found["Mountpoint"] = dir
		}
		answer["Volume"] = found
	case method == "/VolumeDriver.Mount":
		v.ids = append(v.ids, id)
		answer["Mountpoint"] = dir
	case method == "/VolumeDriver.Unmount":
		i := slices.Index(v.ids, id)
		if i < 0 {
			return fmt.Errorf("%s is not mounted for %s", name, id)
		}
		v.ids = slices.Delete(v.ids, i, i+1)
	default:
		return fmt.Errorf("there is no %s", method)
	}
	return nil
}
