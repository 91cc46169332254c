package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func selectorOf(t testing.TB, text string) executor.Selector {
	t.Helper()
	s, err := executor.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryListIsSelectedByLabels(t *testing.T) {
	s := newSystem(t, 2, nil)
	consumer := s.asked(s.ControlPlane)
	for guid, labels := range map[string]map[string]string{"a": {"team": "blog"}, "b": {"team": "shop"}, "c": nil} {
		l := desired(guid, 2)
		l.Labels = labels
		s.must(consumer.Desire(s.ctx, l))
		job := desiredTask("task-"+guid, "")
		job.Definition.Labels = labels
		s.must(consumer.DesireTask(s.ctx, job))
	}
	s.step()
	for text, want := range map[string]string{"": "abc", "team=blog": "a", "team!=blog": "bc", "team": "ab", "!team": "c", "team=none": ""} {
		selector := selectorOf(t, text)
		for _, domain := range []string{"", "apps", "other"} {
			deployments, instances := storage.DeploymentFilter{Selector: selector}, storage.ActualLRPFilter{Selector: selector}
			if domain != "" {
				deployments.Domains, instances.Domains = []string{domain}, []string{domain}
			}
			if domain == "other" {
				want = ""
			}
			check := func(list string, got []string) {
				if text := strings.Join(slices.Compact(got), ""); text != want {
					t.Errorf("%s of %q in domain %q: %q, want %q", list, selector, domain, text, want)
				}
			}
			var got [8][]string
			for i, each := range []storage.DeploymentFilter{deployments, {Domains: deployments.Domains, Selector: selector, Bare: true}} {
				for _, d := range gather(s, consumer.Deployments(s.ctx, each)) {
					got[i] = append(got[i], d.ProcessGUID)
				}
			}
			for _, d := range gather(s, consumer.DesiredLRPs(s.ctx, deployments)) {
				got[2] = append(got[2], d.ProcessGUID)
			}
			for _, d := range gather(s, consumer.RoutingInfos(s.ctx, deployments)) {
				got[3] = append(got[3], d.ProcessGUID)
			}
			for _, d := range gather(s, consumer.SchedulingInfos(s.ctx, deployments)) {
				got[4] = append(got[4], d.ProcessGUID)
			}
			for _, r := range gather(s, consumer.ActualLRPs(s.ctx, instances)) {
				got[5] = append(got[5], r.ProcessGUID)
			}
			for _, r := range gather(s, consumer.ResolvedLRPs(s.ctx, instances)) {
				got[6] = append(got[6], r.ProcessGUID)
			}
			for _, g := range gather(s, consumer.ActualLRPGroups(s.ctx, instances)) {
				got[7] = append(got[7], g.Instance.ProcessGUID)
			}
			for i, list := range []string{"Deployments", "bare Deployments", "DesiredLRPs", "RoutingInfos", "SchedulingInfos", "ActualLRPs", "ResolvedLRPs", "ActualLRPGroups"} {
				check(list, got[i])
			}
			if domain == "" {
				var tasks []string
				for _, x := range gather(s, consumer.Tasks(s.ctx, storage.TaskFilter{Selector: selector})) {
					tasks = append(tasks, strings.TrimPrefix(x.GUID, "task-"))
				}
				check("Tasks", tasks)
			}
		}
	}
	// The other fields of a filter count too, and an instance of one that is not
	// selected does not.
	f := storage.ActualLRPFilter{ProcessGUIDs: []string{"a", "b"}, Indices: []int{1}, Selector: selectorOf(t, "team=shop"), Labels: true}
	if list := gather(s, consumer.ResolvedLRPs(s.ctx, f)); len(list) != 1 || list[0].ProcessGUID != "b" || list[0].Index != 1 {
		t.Errorf("index 1 of a and b, of team shop: %+v", list)
	}
	// A list reads from the start each time.
	list := s.BBS.ActualLRPs(s.ctx, storage.ActualLRPFilter{Selector: selectorOf(t, "team=new")})
	if n := len(gather(s, list)); n != 0 {
		t.Errorf("%d instances of team new", n)
	}
	before := gather(s, consumer.ResolvedLRPs(s.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"a"}}))
	labels := map[string]string{"team": "new"}
	s.must(consumer.UpdateDeployment(s.ctx, "a", lrp.Update{Labels: &labels}))
	s.step()
	after := gather(s, list)
	if len(after) != 2 || after[0].InstanceKey != before[0].InstanceKey || after[1].InstanceKey != before[1].InstanceKey {
		t.Errorf("a change of labels makes %+v of %+v", after, before)
	}
	// What is not desired any more has no labels.
	s.must(consumer.DeleteDeployment(s.ctx, "b"))
	if list := gather(s, consumer.ActualLRPs(s.ctx, storage.ActualLRPFilter{Selector: selectorOf(t, "team!=blog")})); len(list) != 4 {
		t.Errorf("without b: %+v", list)
	}
}

// A subscriber that catches up and one that keeps up see the same, whichever
// kinds of events they want.
func TestEventsAreSelectedByTheLabelsOfTheirMoment(t *testing.T) {
	s := newSystem(t, 2, nil)
	consumer := s.asked(s.ControlPlane)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	filter := storage.EventFilter{
		Selector: selectorOf(t, "team=blog"), Kinds: []string{lrp.InstanceCreated.String(), lrp.InstanceRemoved.String(), storage.KindTaskCreated},
	}
	// The stream begins with the first event that it wants.
	job := desiredTask("job", "")
	job.Definition.Labels = map[string]string{"team": "blog"}
	s.must(consumer.DesireTask(s.ctx, job))
	live, err := consumer.Subscribe(ctx, bbs.FromStart, filter)
	s.must(err)
	seen := make(chan string)
	go func() {
		defer close(seen)
		for e, err := range live {
			if err == nil {
				subject := e.Subject()
				seen <- fmt.Sprint(subject.Kind, " ", subject.ProcessGUID, subject.TaskGUID)
			}
		}
	}()
	list := []string{<-seen}
	for guid, team := range map[string]string{"a": "blog", "b": "shop"} {
		l := desired(guid, 1)
		l.Labels = map[string]string{"team": team}
		s.must(consumer.Desire(s.ctx, l))
	}
	s.step()
	labels := map[string]string{"team": "blog"}
	s.must(consumer.UpdateDeployment(s.ctx, "b", lrp.Update{Labels: &labels}))
	for _, guid := range []string{"a", "b"} {
		s.must(consumer.DeleteDeployment(s.ctx, guid))
		s.step()
		s.step()
	}
	for range 3 {
		list = append(list, <-seen)
	}
	cancel()
	want := []string{"task_created job", "actual_lrp_instance_created a", "actual_lrp_instance_removed a", "actual_lrp_instance_removed b"}
	if !slices.Equal(list, want) {
		t.Errorf("a subscriber that keeps up got %q, want %q", list, want)
	}
	list = nil
	for _, e := range take(t, consumer, bbs.FromStart, filter, 4) {
		subject := e.Subject()
		list = append(list, fmt.Sprint(subject.Kind, " ", subject.ProcessGUID, subject.TaskGUID))
	}
	if !slices.Equal(list, want) {
		t.Errorf("a subscriber that catches up got %q, want %q", list, want)
	}
}

// A subscriber that was cut off goes on as if it had not been, although a process
// has lost its label since and another one ended before the cut.
func TestASubscriberGoesOnWithTheLabelsOfItsPosition(t *testing.T) {
	s := newSystem(t, 2, nil)
	consumer := s.asked(s.ControlPlane)
	desire := func(guid, team string) {
		l := desired(guid, 1)
		l.Labels = map[string]string{"team": team}
		s.must(consumer.Desire(s.ctx, l))
	}
	desire("ends", "blog")
	s.step()
	desire("leaves", "blog")
	desire("joins", "shop")
	s.must(consumer.DeleteDeployment(s.ctx, "ends"))
	cut, err := s.BBS.Log(s.ctx)
	s.must(err)
	s.step()
	for guid, team := range map[string]string{"leaves": "shop", "joins": "blog"} {
		s.must(consumer.UpdateDeployment(s.ctx, guid, lrp.Update{Labels: &map[string]string{"team": team}}))
	}
	s.step()
	last := desiredTask("last", "")
	last.Definition.Labels = map[string]string{"team": "blog"}
	s.must(consumer.DesireTask(s.ctx, last))
	filter := storage.EventFilter{
		Selector: selectorOf(t, "team=blog"), Kinds: []string{lrp.InstanceChanged.String(), lrp.InstanceRemoved.String(), storage.KindTaskCreated},
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	events, err := consumer.Subscribe(ctx, cut.Newest, filter)
	s.must(err)
	var got []string
	for e, err := range events {
		s.must(err)
		subject := e.Subject()
		if subject.TaskGUID == "last" {
			break
		}
		got = append(got, fmt.Sprint(subject.Kind, " ", subject.ProcessGUID, "/", subject.Index))
	}
	slices.Sort(got)
	got = slices.Compact(got)
	if want := []string{"actual_lrp_instance_changed leaves/0", "actual_lrp_instance_removed ends/0"}; !slices.Equal(got, want) {
		t.Errorf("after the cut it sees %q, want %q", got, want)
	}
}
