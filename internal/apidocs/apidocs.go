// Package apidocs renders the calls over HTTP as docs/api.md, so that what
// people read is what is served. `go generate ./...` writes the page; a test
// fails when it is stale.
package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/diegosdk/diego/httpapi"
)

const generated = "<!-- Written by go generate from the tables in the code. Do not edit. -->\n"

const intro = `
Every call is a request to ` + "`/v1/SERVICE/CALL`" + ` with a JSON object, and the answer is a JSON object too. A process may serve several services; the addresses below are examples.

` + "```sh" + `
TLS="--cacert ca.crt --cert client.crt --key client.key"
BBS=https://bbs.example:8889 AUCTIONEER=https://auctioneer.example:9016 CELL=https://cell-1.example:1801
` + "```" + `

**Who may call.** The organizational units (OU) of the client's certificate are its roles: ` + "`diego-consumer`, `diego-cell`, `diego-operator`, `diego-bbs`, `diego-auctioneer`, `diego-log-reader`, `diego-exec`, `diego-locker`" + `; it may have several. Some roles need further units: a log reader one for each domain whose logs it reads and the role ` + "`exec`" + ` one for each domain in whose containers it works, such as ` + "`diego-domain:apps`" + `; a locker one for each lock that it may hold, such as ` + "`diego-lock:router`" + `. The common name (CN) of a cell's certificate is the cell's id. A cell reports only about itself: a call in the name of another cell is refused. A client should check the server's roles in the same way, as the clients of this module do. A process serves calls without TLS only if its operator has allowed it.

**Lists** are answered as lines (` + "`application/x-ndjson`" + `): ` + "`{\"item\": …}`" + ` for each item, or ` + "`{\"problem\": …}`" + ` for one that cannot be read. The last line is ` + "`{\"end\": n}`" + `, with the number of lines before it. A list without that line was cut off; ask again. A list shows one moment, so read it as fast as it comes, and work on it later: a reader that has kept its list waiting for 1 s in all is slow, and if more than four are, the one that has been slow longest is cut off. One caller is sent eight lists at a time; others wait. A list whose reader has kept it waiting counts for ten times as long after its end, at most 10 s.

**Sessions** last as long as a program in a container: a request with the headers ` + "`Connection: Upgrade` and `Upgrade: diego-session-1`" + ` is answered with the status 101, over HTTP/1.1, and the header ` + "`Diego-Heartbeat`" + `. Then both sides send frames: a byte for the kind, four bytes for the length of the rest with the most significant first, and the rest, at most 1 MiB.

| kind | from | the rest |
| --- | --- | --- |
| 0 | client | stdin |
| 1, 2 | cell | stdout, stderr |
| 3 | client | nothing: stdin ends |
| 4 | both | the kind of a stream and four bytes: so many bytes of it were taken |
| 5 | client | JSON: ` + "`{\"resize\":{\"columns\":80,\"rows\":24}}` or `{\"signal\":\"INT\"}`" + ` |
| 6 | both | nothing: the sender is alive |
| 7 | cell | JSON: ` + "`{\"answer\":…}` or `{\"problem\":…}`" + `, the last frame |

A sender waits when the receiver has yet to take 256 KiB of a stream. Each side sends a frame of kind 6 once per heartbeat. It ends the session if it gets no frame of any kind for three heartbeats. The program ends with its session.

**Errors** are problem bodies (` + "`application/problem+json`" + `); [Problems](#problems) lists them. A request with an unknown member is refused; the error names the member. Arguments above the limit (4 MiB unless set otherwise) are refused with the status 413; the error names the limit.

**Request ids.** A call with the header ` + "`Diego-Request-Id`" + ` is carried out once, however often it is sent within an hour. So if an answer was lost, repeat the call with the same id. Every answer has the id of its request. Calls that are marked *repeatable* may be repeated without an id.

**Which process.** One of several processes leads. The others answer reads; they refuse writes with the problem ` + "`not_leader`" + `, which says where the leader is. Any process answers all calls for locks.

**Times and numbers.** Times are RFC 3339 in UTC, such as 2026-01-02T03:04:05.000000006Z. Durations have their unit in their names. Sizes in MB are mebibytes.

## Health

` + "```sh" + `
curl $TLS $BBS/healthz
curl $TLS $BBS/readyz
` + "```" + `

` + "`/healthz`" + ` answers ` + "`{\"status\":\"ok\"}`" + ` as long as the process lives. ` + "`/readyz`" + ` answers with the status 200 or 503 and, of leaders and standbys alike, with what they are and what is missing: ` + "`{\"ready\":true,\"role\":\"standby\",\"leader\":\"bbs-1\",\"address\":\"https://bbs-1.example:8889\"}`" + `. No role is needed for either.
`

// Page renders docs/api.md. The types' documentation is read from the module at
// root.
func Page(root string) (string, error) {
	docs, err := readDocs(root)
	if err != nil {
		return "", err
	}
	limits, err := readLimits(root)
	if err != nil {
		return "", err
	}
	p := page{types: &types{docs: docs, limits: limits, named: map[string]reflect.Type{}}}
	p.text.WriteString("# The API over HTTP\n\n" + generated + intro)
	service := ""
	for _, c := range httpapi.Calls() {
		if c.Service != service {
			service = c.Service
			fmt.Fprintf(&p.text, "\n## %s\n", map[string]string{"bbs": "BBS", "auctioneer": "Auctioneer", "cell": "Cell"}[service])
		}
		if err := p.call(c); err != nil {
			return "", fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	if err := p.problems(); err != nil {
		return "", err
	}
	p.types.write(&p.text)
	return p.text.String(), nil
}

type page struct {
	text  bytes.Buffer
	types *types
}

func (p *page) call(c httpapi.CallInfo) error {
	var roles []string
	for _, r := range c.Roles {
		roles = append(roles, string(r))
	}
	fmt.Fprintf(&p.text, "\n### %s\n\n%s For: %s.", c.Name, c.Doc, strings.Join(roles, ", "))
	if c.Repeatable {
		p.text.WriteString(" Repeatable.")
	}
	line, err := curl(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(&p.text, "\n\n```sh\n%s\n```\n\n", line)
	if c.Feed {
		p.text.WriteString(feedArguments)
	} else {
		fmt.Fprintf(&p.text, "Arguments: %s\n\n", p.types.members(c.Arguments))
	}
	return p.answer(c)
}

const feedArguments = "Parameters: `after` (a sequence number, `now` or `start`; default `now`), and, to choose events, `kind`, `process_guid`, `index`, `task_guid`, `cell_id` and `domain`, each any number of times. `selector` chooses those about processes and tasks with certain labels, such as `team=blog,!tier`. `labels=true` adds to each RUNNING instance its internal routes and metric tags, as they are when the event is read. " +
	"The header `Last-Event-ID` takes precedence over `after`. When there are no events for a while, the server sends a comment, or an `id` alone: the position from which to continue after the connection breaks.\n\n"

func (p *page) answer(c httpapi.CallInfo) error {
	sample, err := json.Marshal(Sample(c.Answer))
	if err != nil {
		return err
	}
	switch {
	case c.Feed:
		fmt.Fprintf(&p.text, "Answer: server-sent events, each with an %s\n\n```\nid: 4712\nevent: actual_lrp_crashed\ndata: %s\n```\n", p.types.link(c.Answer), sample)
	case c.Session && string(sample) == "{}":
		p.text.WriteString("Answer, after the frames of the session: `{}`\n")
	case c.Session:
		fmt.Fprintf(&p.text, "Answer, after the frames of the session: %s\n\n```json\n%s\n```\n", p.types.members(c.Answer), sample)
	case c.Many:
		fmt.Fprintf(&p.text, "Answer: a list of %s\n\n```json\n{\"item\":%s}\n{\"end\":1}\n```\n", p.types.link(c.Answer), sample)
	case string(sample) == "{}":
		p.text.WriteString("Answer: `{}`\n")
	default:
		fmt.Fprintf(&p.text, "Answer: %s\n\n```json\n%s\n```\n", p.types.members(c.Answer), sample)
	}
	return nil
}

// Request is an example of a call's arguments.
func Request(c httpapi.CallInfo) ([]byte, error) {
	if c.Feed {
		return nil, nil
	}
	return json.Marshal(Sample(c.Arguments))
}

// curl is the line that makes a call.
func curl(c httpapi.CallInfo) (string, error) {
	at := "$" + strings.ToUpper(c.Service) + c.Path
	if c.Session {
		return "curl $TLS --http1.1 -N " + at + " -H 'Connection: Upgrade' -H 'Upgrade: diego-session-1' …", nil
	}
	if c.Method == http.MethodGet {
		return "curl $TLS -N \"" + at + "?after=start&process_guid=web\"", nil
	}
	body, err := Request(c)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("curl $TLS %s -H 'Content-Type: application/json' -d '%s'", at, body), nil
}

func (p *page) problems() error {
	p.text.WriteString("\n## Problems\n\nThe member `error` holds what the error knows; its form depends on the type.\n\n| type | status | title | example of `error` |\n| --- | --- | --- | --- |\n")
	var plain []string
	for _, k := range httpapi.ProblemKinds() {
		body, err := httpapi.ProblemBody(k.Example)
		if err != nil {
			return err
		}
		var problem struct {
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(body, &problem); err != nil {
			return err
		}
		if name, bare := strings.CutPrefix(k.Type, "urn:diego:problem:plain_"); bare {
			plain = append(plain, fmt.Sprintf("`%s` (%d)", name, k.Status))
			continue
		}
		example := ""
		if problem.Error != nil {
			example = "`" + strings.ReplaceAll(string(problem.Error), "|", "\\|") + "`"
		}
		fmt.Fprintf(&p.text, "| `%s` | %d | %s | %s |\n", k.Type, k.Status, k.Title, example)
	}
	fmt.Fprintf(&p.text, "\nErrors without details have no member `error`. Their type is `urn:diego:problem:plain_` followed by one of these names, which are also values of `reason`: %s.\n", strings.Join(plain, ", "))
	p.text.WriteString("\nAn error of any other kind is `urn:diego:problem:internal` with the status 500.\n")
	return nil
}

// isNone reports whether a type holds nothing.
func isNone(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.NumField() == 0 }
