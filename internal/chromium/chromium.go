// Package chromium shows pages to tests in a browser without a window: the
// Chromium of the distribution, driven through a pipe by its DevTools protocol.
package chromium

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// patience bounds everything that must happen; nothing waits for it to pass.
const patience = 3 * time.Minute

// A Page is one page of a browser of its own, 1280 by 800 pixels, which cannot
// reach other servers than those it visits. A call that fails ends the test.
// One goroutine may use it.
type Page struct {
	t       testing.TB
	in      *os.File
	session string
	write   sync.Mutex               // one message at a time
	run     func(func() error) error // in the network of the browser
	apart   bool                     // whether that is not the host's

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	ended   chan struct{} // closed when the browser says nothing any more
	faults  []string
	allowed string // the origin of the last Visit
}

// An answer of the protocol, or an event.
type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Method string `json:"method"`
	Params struct {
		Message          string `json:"message"` // of a dialogue
		ExceptionDetails struct {
			Text      string       `json:"text"`
			Exception remoteObject `json:"exception"`
		} `json:"exceptionDetails"`
		Type  string         `json:"type"`
		Args  []remoteObject `json:"args"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
			URL   string `json:"url"`
		} `json:"entry"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
	} `json:"params"`
}

type remoteObject struct {
	Value       json.RawMessage `json:"value"`
	Description string          `json:"description"`
}

// Need ends the test by [testenv.Missing] on a machine without Chromium.
func Need(t testing.TB) (program string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil || runtime.GOOS == "windows" {
		testenv.Missing(t, "chromium", "install Debian's package chromium")
	}
	return program
}

// Open starts a browser, which ends with the test. It needs Chromium.
func Open(t testing.TB) *Page {
	t.Helper()
	return open(t, func(string) error { return nil })
}

// open starts a browser whose home directory was prepared.
func open(t testing.TB, prepare func(home string) error) *Page {
	t.Helper()
	program := Need(t)
	// The browser's helpers may write to its directory a little longer than it
	// runs, so what remains there is no failure.
	dir, err := os.MkdirTemp("", "diego-chromium-")
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	fromTest, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, toTest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
		"--force-device-scale-factor=1", "--window-size=1280,800", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--remote-debugging-pipe", "--user-data-dir="+dir)
	cmd.ExtraFiles = []*os.File{fromTest, toTest} // the descriptors 3 and 4
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var log bytes.Buffer
	cmd.Stderr = &log
	run, end, apart, err := elsewhere()
	if err == nil {
		t.Cleanup(end)
		err = run(cmd.Start)
	}
	fromTest.Close()
	toTest.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{t: t, in: in, run: run, apart: apart, answers: map[int]chan answer{}, ended: make(chan struct{})}
	go p.read(out)
	t.Cleanup(func() {
		in.Close() // ends the browser
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		<-p.ended
		out.Close()
		_ = os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("the browser wrote:\n%s", log.Bytes())
		}
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	p.do("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	p.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	for _, part := range []string{"Page", "Runtime", "Log", "Network"} {
		p.do(part+".enable", nil, nil)
	}
	return p
}

// read takes answers and events until the browser ends.
func (p *Page) read(out *os.File) {
	defer close(p.ended)
	for messages := bufio.NewReader(out); ; {
		text, err := messages.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(text[:len(text)-1], &a); err != nil {
			p.fault("the browser says what cannot be read: " + err.Error())
			continue
		}
		p.mu.Lock()
		if waiting := p.answers[a.ID]; waiting != nil {
			delete(p.answers, a.ID)
			waiting <- a
		}
		p.mu.Unlock()
		p.hear(a)
	}
}

// hear notes what should not happen on a page.
func (p *Page) hear(a answer) {
	in := a.Params
	switch a.Method {
	case "Page.javascriptDialogOpening":
		p.fault("a dialogue opens: " + in.Message)
		// The page stands still until it is closed.
		go func() { _ = p.try("Page.handleJavaScriptDialog", map[string]any{"accept": true}, nil) }()
	case "Runtime.exceptionThrown":
		p.fault(in.ExceptionDetails.Text + ": " + in.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if in.Type == "error" || in.Type == "assert" {
			p.fault(fmt.Sprintf("the page reports %s", in.Args))
		}
	case "Log.entryAdded":
		if in.Entry.Level == "error" {
			p.fault(in.Entry.Text + " " + in.Entry.URL)
		}
	case "Network.requestWillBeSent":
		u, err := url.Parse(in.Request.URL)
		if err == nil && strings.HasPrefix(u.Scheme, "http") && u.Scheme+"://"+u.Host != p.origin() {
			p.fault("the page asks another server: " + in.Request.URL)
		}
	}
}

func (p *Page) origin() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed
}

func (p *Page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// Faults returns what has gone wrong on pages so far, and forgets it: errors of
// scripts and of the content security policy, answers that are errors, dialogues,
// and requests to servers other than that of the last [Page.Visit].
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := p.faults
	p.faults = nil
	return faults
}

// try makes a call of the protocol.
func (p *Page) try(method string, params, out any) error {
	p.mu.Lock()
	p.last++
	id, waiting := p.last, make(chan answer, 1)
	p.answers[id] = waiting
	p.mu.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		p.write.Lock()
		_, err = p.in.Write(append(text, 0))
		p.write.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-waiting:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(a.Result, out)
	case <-p.ended:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

func (p *Page) do(method string, params, out any) {
	p.t.Helper()
	if err := p.try(method, params, out); err != nil {
		p.t.Fatal(err)
	}
}

// Visit loads a page.
func (p *Page) Visit(address string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	if u.Scheme+"://"+u.Host != p.origin() && p.apart {
		p.forward(u.Host)
	}
	p.mu.Lock()
	p.allowed = u.Scheme + "://" + u.Host
	p.mu.Unlock()
	var loaded struct {
		ErrorText string `json:"errorText"`
	}
	if p.do("Page.navigate", map[string]any{"url": address}, &loaded); loaded.ErrorText != "" {
		p.t.Fatalf("%s: %s", address, loaded.ErrorText)
	}
}

// forward leads an address in the network of the browser to the same of the host.
func (p *Page) forward(address string) {
	p.t.Helper()
	var l net.Listener
	if err := p.run(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", address)
			if err != nil {
				from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					from.Close()
					to.Close()
				}()
			}
		}
	}()
}

func here(f func() error) error { return f() }

// eval evaluates a script.
func (p *Page) eval(script string, out any) error {
	var a struct {
		Result           remoteObject `json:"result"`
		ExceptionDetails *struct {
			Text      string       `json:"text"`
			Exception remoteObject `json:"exception"`
		} `json:"exceptionDetails"`
	}
	err := p.try("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &a)
	switch {
	case err != nil:
		return err
	case a.ExceptionDetails != nil:
		return fmt.Errorf("%s: %s: %s", script, a.ExceptionDetails.Text, a.ExceptionDetails.Exception.Description)
	case out == nil || a.Result.Value == nil:
		return nil
	}
	return json.Unmarshal(a.Result.Value, out)
}

// Eval evaluates a script, waits for it if it is a promise, and reads its value,
// as JSON, into out unless that is nil.
func (p *Page) Eval(script string, out any) {
	p.t.Helper()
	if err := p.eval(script, out); err != nil {
		p.t.Fatal(err)
	}
}

// Await waits until a script has the value true. A script that fails, for
// example because what it looks for is not there yet, is tried again.
func (p *Page) Await(script string) {
	p.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ok := false
		if err = p.eval(script, &ok); ok && err == nil {
			return
		}
	}
	var text string
	_ = p.eval("location.hash + ' ' + document.body.innerText", &text)
	p.t.Fatalf("it does not become true that %s (%v). The page has the faults %q and says:\n%s", script, err, p.Faults(), text)
}

// Press presses a key by its DOM name, for example "ArrowRight" or "Enter".
func (p *Page) Press(key string) {
	p.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key, "code": key}
	code := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
	params["windowsVirtualKeyCode"] = code
	if key == "Enter" {
		params["text"] = "\r"
	}
	p.do("Input.dispatchKeyEvent", params, nil)
	params["type"] = "keyUp"
	delete(params, "text")
	p.do("Input.dispatchKeyEvent", params, nil)
}

// Dark lets the page's user prefer dark colours, as a setting of the system does.
func (p *Page) Dark() {
	p.t.Helper()
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
}

// Screenshots is the environment variable with the name of a directory for
// pictures. Without it, they are made and thrown away.
const Screenshots = "DIEGO_TEST_SCREENSHOTS"

// Screenshot makes a picture of the page as it is seen, NAME.png in the directory
// that [Screenshots] names.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	var picture struct {
		Data string `json:"data"`
	}
	p.do("Page.captureScreenshot", map[string]any{"format": "png"}, &picture)
	body, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil && len(body) == 0 {
		err = fmt.Errorf("the picture %s is empty", name)
	}
	if dir := os.Getenv(Screenshots); err == nil && dir != "" {
		err = os.WriteFile(filepath.Join(dir, name+".png"), body, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
