package syslogtest

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mark = "\xef\xbb\xbf"

// The examples of RFC 5424 section 6.5, and of section 6.3.5 with a header.
func TestTheExamplesOfTheStandardAreRead(t *testing.T) {
	const head = "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 "
	event := Element{"exampleSDID@32473", [][2]string{{"iut", "3"}, {"eventSource", "Application"}, {"eventID", "1011"}}}
	priority := Element{"examplePriority@32473", [][2]string{{"class", "high"}}}
	common := func(text string, data ...Element) Message {
		return Message{165, "2003-10-11T22:14:15.003Z", "mymachine.example.com", "evntslog", "", "ID47", data, text}
	}
	for text, want := range map[string]Message{
		"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - " + mark + "'su root' failed for lonvick on /dev/pts/8": {
			34, "2003-10-11T22:14:15.003Z", "mymachine.example.com", "su", "", "ID47", nil, mark + "'su root' failed for lonvick on /dev/pts/8",
		},
		"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.": {
			165, "2003-08-24T05:14:15.000003-07:00", "192.0.2.1", "myproc", "8710", "", nil, "%% It's time to make the do-nuts.",
		},
		head + `[exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] ` + mark + "An application event log entry...": common(mark+"An application event log entry...", event),
		head + `[exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"]`:           common("", event, priority),
		head + `[exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] [examplePriority@32473 class="high"]`:          common(`[examplePriority@32473 class="high"]`, event),
		head + `[sigSig ver="1" rsID="1234" signature="..."]`:                                                                       common("", Element{"sigSig", [][2]string{{"ver", "1"}, {"rsID", "1234"}, {"signature", "..."}}}),
		head + `[x a="\"\\\]\n"] ]"`: common(`]"`, Element{"x", [][2]string{{"a", `"\]\n`}}}),
	} {
		got, err := Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{
		head + `[ exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"]`,
		head + `[a x="]"] t`, head + `[a][a] t`, head + `[a x="\xff` + "\xff" + `"]`, head + `[a x=1]`, head + `[a x="1]`, head + "text", head + "-text",
		head + "- " + mark + "\xff", "<192>1 - - - - - -", "<01>1 - - - - - -", "<1>2 - - - - - -", "<1>1 - a\x7f - - - -", "<1>1 2003-10-11 - - - - -",
	} {
		if m, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, m)
		}
	}
}

func TestFramesAreReadOneAfterAnother(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("16 <1>1 - - - - - -17 <2>1 - - - - - - 9 <3>"))
	var got []int
	for {
		m, err := Read(r)
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, m.Priority)
	}
	if !cmp.Equal(got, []int{1, 2}) {
		t.Errorf("got %v", got)
	}
}
