package auction

import (
	"fmt"
	"strconv"
	"strings"
)

// Why names the criterion that decided for the winner, for people: the first in
// which it is better than the runner-up. The scores have all criteria.
func (p Placement) Why() string {
	won, lost, other := p.Score, p.RunnerUp.Score, p.RunnerUp.CellID
	switch {
	case other == "":
		return "no other cell can take it"
	case won.Preference != lost.Preference:
		return fmt.Sprintf("preferred: %g against %g on %s", won.Preference, lost.Preference, other)
	case won.ZoneInstances != lost.ZoneInstances:
		return fmt.Sprintf("fewest of its process in the zone: %d against %d with %s", won.ZoneInstances, lost.ZoneInstances, other)
	case won.CellInstances != lost.CellInstances:
		return fmt.Sprintf("fewest of its process: %d against %d on %s", won.CellInstances, lost.CellInstances, other)
	case won.CellTasks != lost.CellTasks:
		return fmt.Sprintf("fewest tasks: %d against %d on %s", won.CellTasks, lost.CellTasks, other)
	case won.Resources() < lost.Resources():
		return fmt.Sprintf("least load: %.4f against %.4f on %s", won.Resources(), lost.Resources(), other)
	case won.Resources() > lost.Resources():
		return fmt.Sprintf("fullest of equally loaded cells: %.4f against %.4f on %s", won.Resources(), lost.Resources(), other)
	}
	return "as good as " + other
}

// reason is the winner's score, why it won, and the parts of both scores, for the
// timeline of an instance.
func (p Placement) reason() string {
	return fmt.Sprintf("score %.4f, %s%s", p.Score.Resources(), p.Why(), p.parts())
}

// beginsParts is what separates the parts of the scores from the reason before them.
const beginsParts = "; parts"

// WithoutParts returns text without the parts of the scores, for lines that
// have to be short. text is a reason of Work.Reasons, or ends with one.
func WithoutParts(text string) string {
	short, _, _ := strings.Cut(text, beginsParts)
	return short
}

// parts has each part of the scores that is not 0 on both cells: "; parts against
// cell-2: memory in use 0.25/0.5". It is empty if there is none, and shorter than
// 400 bytes and the runner-up's name.
func (p *Placement) parts() string {
	won, lost := &p.Score, &p.RunnerUp.Score
	var parts []string
	for _, part := range [...]struct {
		name      string
		won, lost float64
	}{
		{"preference", won.Preference, lost.Preference},
		{"of its process in the zone", float64(won.ZoneInstances), float64(lost.ZoneInstances)},
		{"of its process on the cell", float64(won.CellInstances), float64(lost.CellInstances)},
		{"tasks on the cell", float64(won.CellTasks), float64(lost.CellTasks)},
		{"memory in use", won.Memory, lost.Memory},
		{"disk in use", won.Disk, lost.Disk},
		{"containers in use", won.Containers, lost.Containers},
		{"further resources in use", won.Extra, lost.Extra},
		{"containers that start", won.Starting, lost.Starting},
		{"bin packing", won.BinPack, lost.BinPack},
	} {
		switch {
		case part.won == 0 && part.lost == 0:
		case p.RunnerUp.CellID == "":
			parts = append(parts, part.name+" "+short(part.won))
		default:
			parts = append(parts, part.name+" "+short(part.won)+"/"+short(part.lost))
		}
	}
	switch {
	case len(parts) == 0:
		return ""
	case p.RunnerUp.CellID == "":
		return beginsParts + ": " + strings.Join(parts, ", ")
	}
	return beginsParts + " against " + p.RunnerUp.CellID + ": " + strings.Join(parts, ", ")
}

// short is a number of a score in at most five digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
