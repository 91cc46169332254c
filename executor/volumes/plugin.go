package volumes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/diegosdk/diego/executor"
)

// A Plugin is a driver that asks a process on this host, which speaks Docker's
// volume plugin protocol (JSON over a unix socket). A volume's id is its name
// for the plugin. If the plugin does not know the name, the volume is created,
// with the mount_config as options: a JSON object of strings. A volume that is
// there already keeps the options with which it was made.
//
// The plugin is trusted: what it says is mounted. It must mount where the daemon
// sees it, so it shares the daemon's mount namespace. Any number of goroutines
// may use a Plugin.
type Plugin struct {
	socket string
	client http.Client
	// settled has the ids of which there is nothing to unmount, which most plugins
	// refuse: those of Mounts that the plugin has refused, and those that it has
	// unmounted after the caller had given up.
	settled sync.Map
}

// NewPlugin returns a driver for the plugin that listens at a socket, such as
// /run/docker/plugins/NAME.sock. It does not connect.
func NewPlugin(socket string) *Plugin {
	p := &Plugin{socket: socket}
	p.client.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true, // a plugin that has started again is a new one
	}
	return p
}

// The members of the protocol's requests and answers that are used here.
type (
	pluginRequest struct {
		Name string            `json:",omitempty"`
		ID   string            `json:",omitempty"`
		Opts map[string]string `json:",omitempty"`
	}
	pluginAnswer struct {
		Implements []string
		Mountpoint string
		Volume     *pluginVolume
		Volumes    []pluginVolume
		Err        string
	}
	pluginVolume struct {
		Name, Mountpoint string
		Status           json.RawMessage // each plugin says what it likes
	}
)

// mountedBy says whether the volume may be mounted for id. Many plugins name a
// mountpoint in any case. rclone then lists the ids of all mounts, too.
func (v *pluginVolume) mountedBy(id string) bool {
	var status struct{ Mounts *[]string }
	if json.Unmarshal(v.Status, &status) == nil && status.Mounts != nil {
		return slices.Contains(*status.Mounts, id)
	}
	return v.Mountpoint != ""
}

// A refusal is the plugin's own word.
type refusal struct{ method, why string }

func (r *refusal) Error() string { return fmt.Sprintf("the plugin refuses %s: %s", r.method, r.why) }

// maxAnswerBytes bounds an answer of a plugin.
const maxAnswerBytes = 1 << 20

// ask makes one call. The error is a *refusal if the plugin has answered.
func (p *Plugin) ask(ctx context.Context, method string, r pluginRequest) (answer pluginAnswer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://plugin/"+method, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Content-Type", "application/vnd.docker.plugins.v1.2+json")
	request.Header.Set("Accept", "application/vnd.docker.plugins.v1.2+json")
	response, err := p.client.Do(request)
	if err != nil {
		return answer, fmt.Errorf("%s at %s: %w", method, p.socket, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return answer, fmt.Errorf("%s at %s: %w", method, p.socket, err)
	}
	err = json.Unmarshal(text, &answer)
	switch {
	case err == nil && answer.Err != "":
		return answer, &refusal{method, answer.Err}
	case response.StatusCode != http.StatusOK:
		return answer, &refusal{method, fmt.Sprintf("%s: %.200s", response.Status, text)}
	case err != nil:
		return answer, fmt.Errorf("%s at %s: the answer is not of the protocol: %w", method, p.socket, err)
	}
	return answer, nil
}

// Probe asks the plugin whether it is a volume driver.
func (p *Plugin) Probe(ctx context.Context) error {
	answer, err := p.ask(ctx, "Plugin.Activate", pluginRequest{})
	if err == nil && !slices.Contains(answer.Implements, "VolumeDriver") {
		err = fmt.Errorf("the plugin at %s implements %q, and no VolumeDriver", p.socket, answer.Implements)
	}
	return err
}

// Mount has the plugin mount the volume, which it creates first if need be. Once
// it has asked for the mount it waits for the answer, even if ctx ends meanwhile:
// the plugin goes on mounting, and an Unmount must not overtake it.
func (p *Plugin) Mount(ctx context.Context, guid string, v executor.VolumeMount) (string, error) {
	id := mountID(guid, v)
	p.settled.Store(id, true) // until the plugin is asked
	name, config, err := nameOf(v)
	if err != nil {
		return "", err
	}
	var options map[string]string
	if config != "" {
		if err := json.Unmarshal([]byte(config), &options); err != nil {
			return "", fmt.Errorf("the mount_config has to be a JSON object of strings: %w", err)
		}
	}
	var refused *refusal
	_, err = p.ask(ctx, "VolumeDriver.Get", pluginRequest{Name: name})
	if errors.As(err, &refused) { // it does not know the name
		_, err = p.ask(ctx, "VolumeDriver.Create", pluginRequest{Name: name, Opts: options})
	}
	if errors.As(err, &refused) {
		// Another container may have created it meanwhile.
		if _, again := p.ask(ctx, "VolumeDriver.Get", pluginRequest{Name: name}); again == nil {
			err = nil
		}
	}
	if err != nil {
		return "", err
	}
	p.settled.Delete(id)
	answer, err := p.ask(context.WithoutCancel(ctx), "VolumeDriver.Mount", pluginRequest{Name: name, ID: id})
	if errors.As(err, &refused) {
		p.settled.Store(id, true)
	}
	return answer.Mountpoint, err
}

// Kind names the socket: a plugin at another one is another driver.
func (p *Plugin) Kind() string { return "the plugin at " + p.socket }

// Unmount has the plugin unmount the volume. It is no error if the plugin
// refuses that and does not list the volume, or says that it is not mounted for
// this container. It waits for the answer as Mount does.
func (p *Plugin) Unmount(ctx context.Context, guid string, v executor.VolumeMount) error {
	id := mountID(guid, v)
	if _, settled := p.settled.LoadAndDelete(id); settled {
		return nil
	}
	name, _, err := nameOf(v)
	if err != nil {
		return nil // so it was not mounted
	}
	_, err = p.ask(context.WithoutCancel(ctx), "VolumeDriver.Unmount", pluginRequest{Name: name, ID: id})
	if err == nil && ctx.Err() != nil {
		p.settled.Store(id, true) // the caller does not hear of it, and asks again
	}
	var refused *refusal
	if !errors.As(err, &refused) {
		return err
	}
	list, why := p.ask(ctx, "VolumeDriver.List", pluginRequest{})
	if why != nil {
		return err
	}
	if !slices.ContainsFunc(list.Volumes, func(v pluginVolume) bool { return v.Name == name }) {
		return nil
	}
	if known, why := p.ask(ctx, "VolumeDriver.Get", pluginRequest{Name: name}); why == nil && known.Volume != nil && !known.Volume.mountedBy(id) {
		return nil
	}
	return err
}

// mountID tells one mount from all others: the plugin counts by it. A container
// may mount a volume in several places.
func mountID(guid string, v executor.VolumeMount) string {
	sum := sha256.Sum256([]byte(v.ContainerDir))
	return guid + "-" + hex.EncodeToString(sum[:16]) // so that nobody finds two with one sum
}
