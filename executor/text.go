package executor

import "strings"

// Limits of text that LRPs and tasks have in common.
const (
	// MaxAnnotationBytes is the longest annotation: 10 KiB.
	MaxAnnotationBytes = 10 * 1024
	// MaxReasonBytes is the longest reason (of a crash, a failure, a
	// rejection) that is kept: 1 KiB. See [CutReason].
	MaxReasonBytes = 1024
)

const cutMark = " (cut)"

// CutReason makes text fit to be kept as a reason: it replaces bytes that are
// not UTF-8, and cuts text longer than [MaxReasonBytes] at a character, with "
// (cut)" at the end.
func CutReason(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxReasonBytes-len(cutMark)], "") + cutMark
}

// IsCut reports whether [CutReason] has cut the text.
func IsCut(text string) bool { return strings.HasSuffix(text, cutMark) }
