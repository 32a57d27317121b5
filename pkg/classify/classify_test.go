package classify

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var three = []Class{
	{Name: "now", Deadline: 10 * time.Second},
	{Name: "soon", Deadline: time.Minute},
	{Name: "later", Deadline: 10 * time.Minute, Bulk: true},
}

// llm-d-router PR#2123 (who may lengthen a deadline) and llm-d-async PR#380 (whose word a class is).
func TestClassify(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	for _, c := range []struct {
		name  string
		in    Input
		class int
		d     time.Duration
	}{
		{"nothing said: the default", Input{}, 0, 10 * time.Second},
		{"header lowers", Input{HeaderClass: "soon"}, 1, time.Minute},
		{"header lowers to the last", Input{HeaderClass: "later"}, 2, 10 * time.Minute},
		{"route lowers", Input{RouteClass: "soon"}, 1, time.Minute},
		{"header cannot raise above the route", Input{RouteClass: "later", HeaderClass: "now"}, 2, 10 * time.Minute},
		{"header cannot raise by one", Input{RouteClass: "later", HeaderClass: "soon"}, 2, 10 * time.Minute},
		{"header lowers below the route", Input{RouteClass: "soon", HeaderClass: "later"}, 2, 10 * time.Minute},
		{"header equals the route", Input{RouteClass: "soon", HeaderClass: "soon"}, 1, time.Minute},

		{"unknown header", Input{HeaderClass: "urgent"}, 0, 10 * time.Second},
		{"unknown header on a route", Input{RouteClass: "later", HeaderClass: "urgent"}, 2, 10 * time.Minute},
		{"unknown route", Input{RouteClass: "urgent"}, 0, 10 * time.Second},
		{"another case is another name", Input{HeaderClass: "Later"}, 0, 10 * time.Second},
		{"blank", Input{HeaderClass: "   "}, 0, 10 * time.Second},
		{"commas", Input{HeaderClass: ",,, ,"}, 0, 10 * time.Second},
		{"unicode", Input{HeaderClass: "läter, \u202elater, ｌater"}, 0, 10 * time.Second},
		{"not UTF-8", Input{HeaderClass: "\xff\xfe"}, 0, 10 * time.Second},
		{"8 kB", Input{HeaderClass: long}, 0, 10 * time.Second},
		{"8 kB of commas", Input{HeaderClass: strings.Repeat(",", 8<<10)}, 0, 10 * time.Second},
		{"8 kB and then a class", Input{HeaderClass: long + ",later"}, 2, 10 * time.Minute},
		{"padded", Input{HeaderClass: " \tlater "}, 2, 10 * time.Minute},

		{"twice: the least urgent", Input{HeaderClass: "later,now"}, 2, 10 * time.Minute},
		{"twice in the other order", Input{HeaderClass: "now, later"}, 2, 10 * time.Minute},
		{"twice on a route", Input{RouteClass: "soon", HeaderClass: "now,later,soon"}, 2, 10 * time.Minute},
		{"unknown beside a known one", Input{HeaderClass: "urgent,soon"}, 1, time.Minute},
		{"one name of two words", Input{HeaderClass: "now later"}, 0, 10 * time.Second},

		{"shorter deadline", Input{HeaderDeadline: "2s"}, 0, 2 * time.Second},
		{"a client cannot lengthen", Input{HeaderDeadline: "1h"}, 0, 10 * time.Second},
		{"nor beyond its route", Input{RouteDeadline: "3s", HeaderDeadline: "5s"}, 0, 3 * time.Second},
		{"shorter than its route", Input{RouteDeadline: "5s", HeaderDeadline: "3s"}, 0, 3 * time.Second},
		{"a route's longer one", Input{RouteDeadline: "1h"}, 0, 10 * time.Second},
		{"of a lower class", Input{HeaderClass: "later", HeaderDeadline: "2m"}, 2, 2 * time.Minute},
		{"fraction", Input{HeaderDeadline: "1.5s"}, 0, 1500 * time.Millisecond},
		{"smallest", Input{HeaderDeadline: "1ns"}, 0, 1},
		{"largest", Input{HeaderDeadline: "2562047h47m16.854775807s"}, 0, 10 * time.Second},

		{"zero", Input{HeaderDeadline: "0"}, 0, 10 * time.Second},
		{"zero seconds", Input{HeaderDeadline: "0s"}, 0, 10 * time.Second},
		{"negative", Input{HeaderDeadline: "-5s"}, 0, 10 * time.Second},
		{"no unit", Input{HeaderDeadline: "5"}, 0, 10 * time.Second},
		{"exponent", Input{HeaderDeadline: "1e9h"}, 0, 10 * time.Second},
		{"overflow", Input{HeaderDeadline: "99999999999h"}, 0, 10 * time.Second},
		{"garbage", Input{HeaderDeadline: "soon"}, 0, 10 * time.Second},
		{"NaN", Input{HeaderDeadline: "NaN"}, 0, 10 * time.Second},
		{"twice: the shorter", Input{HeaderDeadline: "2s, 1s,soon"}, 0, time.Second},
		{"8 kB deadline", Input{HeaderDeadline: long}, 0, 10 * time.Second},
		{"8 kB of digits", Input{HeaderDeadline: strings.Repeat("9", 8<<10) + "s"}, 0, 10 * time.Second},
		{"garbage on the route", Input{RouteDeadline: "x", HeaderDeadline: "4s"}, 0, 4 * time.Second},
	} {
		if got := Classify(three, c.in); got.Class != c.class || got.Deadline != c.d {
			t.Errorf("%s: %+v, want class %d in %v", c.name, got, c.class, c.d)
		}
	}
}

// Trusted metadata sets a class, its route bounds it, and the client's header only ever lowers it.
func TestTrustedClass(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		want int
	}{
		{"alone", Input{TrustedClass: "soon"}, 1},
		{"of a route without a class", Input{TrustedClass: "later"}, 2},
		{"its route is a ceiling", Input{TrustedClass: "now", RouteClass: "later"}, 2},
		{"below its route", Input{TrustedClass: "later", RouteClass: "soon"}, 2},
		{"the header cannot raise it", Input{TrustedClass: "later", HeaderClass: "now"}, 2},
		{"nor by one", Input{TrustedClass: "later", RouteClass: "now", HeaderClass: "soon"}, 2},
		{"the header lowers it", Input{TrustedClass: "soon", HeaderClass: "later"}, 2},
		{"all three", Input{TrustedClass: "now", RouteClass: "soon", HeaderClass: "now"}, 1},
		{"unknown: the default", Input{TrustedClass: "gold"}, 0},
		{"unknown on a route", Input{TrustedClass: "gold", RouteClass: "soon"}, 1},
		{"another case", Input{TrustedClass: "Later"}, 0},
		{"a list is no name", Input{TrustedClass: "later,now"}, 0},
		{"blank", Input{TrustedClass: " "}, 0},
	} {
		if got := Classify(three, c.in); got.Class != c.want || got.Deadline != three[c.want].Deadline || got.Asked {
			t.Errorf("%s: %+v, want class %d", c.name, got, c.want)
		}
	}
}

// llm-d-router PR#2123 where a client may ask for more than the class's own deadline. Asked says that it did, and gets no slack.
func TestMaxDeadline(t *testing.T) {
	classes := []Class{
		{Name: "now", Deadline: 10 * time.Second, MaxDeadline: 40 * time.Second},
		{Name: "soon", Deadline: time.Minute, MaxDeadline: time.Minute},
		{Name: "later", Deadline: 10 * time.Minute},
	}
	for _, c := range []struct {
		name  string
		in    Input
		d     time.Duration
		asked bool
	}{
		{"nothing asked", Input{}, 10 * time.Second, false},
		{"shorter", Input{HeaderDeadline: "2s"}, 2 * time.Second, true},
		{"its class's own", Input{HeaderDeadline: "10s"}, 10 * time.Second, true},
		{"longer", Input{HeaderDeadline: "25s"}, 25 * time.Second, true},
		{"the most", Input{HeaderDeadline: "40s"}, 40 * time.Second, true},
		{"more than the most", Input{HeaderDeadline: "41s"}, 40 * time.Second, true},
		{"far more", Input{HeaderDeadline: "2562047h"}, 40 * time.Second, true},
		{"the most is the class's own", Input{HeaderClass: "soon", HeaderDeadline: "5m"}, time.Minute, true},
		{"no most: the class's own", Input{HeaderClass: "later", HeaderDeadline: "1h"}, 10 * time.Minute, true},
		{"of a lower class", Input{HeaderClass: "later", HeaderDeadline: "40s"}, 40 * time.Second, true},
		{"a route's bounds the own", Input{RouteDeadline: "5s"}, 5 * time.Second, false},
		{"a route's is no wish of the client's", Input{RouteDeadline: "30s"}, 10 * time.Second, false},
		{"a route's bounds the most", Input{RouteDeadline: "30s", HeaderDeadline: "35s"}, 30 * time.Second, true},
		{"between own and route", Input{RouteDeadline: "30s", HeaderDeadline: "20s"}, 20 * time.Second, true},
		{"a route's above the most", Input{RouteDeadline: "1h", HeaderDeadline: "1h"}, 40 * time.Second, true},
		{"garbage is not asked", Input{HeaderDeadline: "1e9h"}, 10 * time.Second, false},
		{"negative is not asked", Input{HeaderDeadline: "-1s"}, 10 * time.Second, false},
		{"zero is not asked", Input{HeaderDeadline: "0s"}, 10 * time.Second, false},
	} {
		if got := Classify(classes, c.in); got.Deadline != c.d || got.Asked != c.asked {
			t.Errorf("%s: %+v, want %v, asked %v", c.name, got, c.d, c.asked)
		}
	}
}

func FuzzClassify(f *testing.F) {
	classes := slices.Clone(three)
	classes[1].MaxDeadline = 5 * time.Minute
	f.Add("", "", "", "", "")
	f.Add("soon", "5s", "now", "now,later", "1ms")
	f.Add("now", "2m", "soon", "now", "3m")
	f.Add("urgent", "-5s", "later", "later\x00, ", "1e9h")
	f.Fuzz(func(t *testing.T, routeClass, routeDeadline, trusted, class, deadline string) {
		ceiling := Classify(classes, Input{RouteClass: routeClass, RouteDeadline: routeDeadline})
		set := Classify(classes, Input{RouteClass: routeClass, RouteDeadline: routeDeadline, TrustedClass: trusted})
		got := Classify(classes, Input{routeClass, routeDeadline, trusted, class, deadline})
		if set.Class < ceiling.Class || got.Class < set.Class || got.Class >= len(classes) {
			t.Errorf("class %d, ceiling %d, with the trusted one %d", got.Class, ceiling.Class, set.Class)
		}
		most := max(classes[got.Class].Deadline, classes[got.Class].MaxDeadline)
		if got.Deadline <= 0 || got.Deadline > most || !got.Asked && got.Deadline > classes[got.Class].Deadline {
			t.Errorf("deadline %v in class %d, asked %v", got.Deadline, got.Class, got.Asked)
		}
		if d, err := time.ParseDuration(routeDeadline); err == nil && d > 0 && got.Deadline > d {
			t.Errorf("deadline %v beyond the route's %v", got.Deadline, d)
		}
		if d, err := time.ParseDuration(deadline); err == nil && d > 0 && (got.Deadline > d || !got.Asked) {
			t.Errorf("deadline %v beyond the client's %v", got.Deadline, d)
		}
	})
}

func TestClassifyAllocatesNothing(t *testing.T) {
	for _, in := range []Input{{}, {RouteClass: "soon", RouteDeadline: "30s", TrustedClass: "now", HeaderClass: "now, later", HeaderDeadline: "2s"}} {
		if n := testing.AllocsPerRun(100, func() { Classify(three, in) }); n != 0 {
			t.Errorf("%+v: %v allocations", in, n)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Validate(Default()); err != nil {
		t.Errorf("the default: %v", err)
	}
	if err := Validate(three); err != nil {
		t.Errorf("three classes: %v", err)
	}
	whole := []Class{{Name: "a", Deadline: time.Second, MaxDeadline: time.Second, SharePercent: 60}, {Name: "b", Deadline: time.Hour, SharePercent: 40}}
	if err := Validate(whole); err != nil {
		t.Errorf("shares of 100 in all: %v", err)
	}
	ok := Class{Name: "a", Deadline: time.Second}
	for _, c := range []struct {
		classes []Class
		want    string
	}{
		{nil, "classes: at least one is needed"},
		{[]Class{{Deadline: time.Second}}, `classes[0].name: "" is not 1 to 63 of a-z, 0-9, - and _`},
		{[]Class{{Name: "A", Deadline: time.Second}}, `classes[0].name: "A" is not`},
		{[]Class{{Name: "a,b", Deadline: time.Second}}, `classes[0].name: "a,b" is not`},
		{[]Class{{Name: "a b", Deadline: time.Second}}, `classes[0].name: "a b" is not`},
		{[]Class{{Name: strings.Repeat("a", 64), Deadline: time.Second}}, "classes[0].name: "},
		{[]Class{ok, ok}, `classes[1].name: "a" stands twice`},
		{[]Class{{Name: "a"}}, "classes[0].deadline: 0s is not between 0 and 1h"},
		{[]Class{{Name: "a", Deadline: -1}}, "classes[0].deadline: -1ns is not"},
		{[]Class{ok, {Name: "b", Deadline: time.Hour + 1}}, "classes[1].deadline: 1h0m0.000000001s is not"},
		{[]Class{{Name: "a", Deadline: time.Second, Bulk: true}}, "classes[0].bulk: "},
		{[]Class{{Name: "a", Deadline: time.Second, MaxDeadline: time.Second - 1}}, "classes[0].max_deadline: 999.999999ms is not between the deadline 1s and 1h"},
		{[]Class{{Name: "a", Deadline: time.Second, MaxDeadline: -1}}, "classes[0].max_deadline: -1ns is not"},
		{[]Class{{Name: "a", Deadline: time.Second, MaxDeadline: time.Hour + 1}}, "classes[0].max_deadline: 1h0m0.000000001s is not"},
		{[]Class{{Name: "a", Deadline: time.Second, SharePercent: -1}}, "classes[0].share_percent: -1 is not between 0 and 100"},
		{[]Class{{Name: "a", Deadline: time.Second, SharePercent: 101}, {Name: "b", Deadline: time.Second, SharePercent: 100}}, "classes[0].share_percent: 101 is not between 0 and 100"},
		{[]Class{{Name: "a", Deadline: time.Second, SharePercent: 60}, {Name: "b", Deadline: time.Second, SharePercent: 41}, {Name: "c", Deadline: time.Second, SharePercent: 5}}, "classes[1].share_percent: with those before it 101, more than 100"},
		{[]Class{{Name: "a", Deadline: time.Second, MaxHeld: -1}}, "classes[0].max_held: -1 is not between 0 and 1000000"},
		{[]Class{{Name: "a", Deadline: time.Second, MaxHeld: 1_000_001}}, "classes[0].max_held: 1000001 is not"},
		{[]Class{{Name: "a", Deadline: time.Second, MaxHeldBytes: -1}}, "classes[0].max_held_bytes: -1 is not between 0 and 17592186044416"},
		{[]Class{{Name: "B", Bulk: true}}, "classes[0].name: \"B\" is not 1 to 63 of a-z, 0-9, - and _\nclasses[0].deadline: 0s is not between 0 and 1h\nclasses[0].bulk: "},
	} {
		err := Validate(c.classes)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.classes, err, c.want)
		} else if n := strings.Count(c.want, "\n"); strings.Count(err.Error(), "\n") != n {
			t.Errorf("%+v: %v, want %d errors", c.classes, err, n+1)
		}
	}
}
