package classify

import (
	"strings"
	"testing"
	"time"
)

var three = []Class{
	{Name: "now", Deadline: 10 * time.Second},
	{Name: "soon", Deadline: time.Minute},
	{Name: "later", Deadline: 10 * time.Minute, Bulk: true},
}

// cases F5 and F7.
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
		{"twice", Input{HeaderDeadline: "1s,2s"}, 0, 10 * time.Second},
		{"8 kB deadline", Input{HeaderDeadline: long}, 0, 10 * time.Second},
		{"8 kB of digits", Input{HeaderDeadline: strings.Repeat("9", 8<<10) + "s"}, 0, 10 * time.Second},
		{"garbage on the route", Input{RouteDeadline: "x", HeaderDeadline: "4s"}, 0, 4 * time.Second},
	} {
		if got := Classify(three, c.in); got != (Result{c.class, c.d}) {
			t.Errorf("%s: %+v, want class %d in %v", c.name, got, c.class, c.d)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("", "", "", "")
	f.Add("soon", "5s", "now,later", "1ms")
	f.Add("urgent", "-5s", "later\x00, ", "1e9h")
	f.Fuzz(func(t *testing.T, routeClass, routeDeadline, class, deadline string) {
		ceiling := Classify(three, Input{RouteClass: routeClass, RouteDeadline: routeDeadline})
		got := Classify(three, Input{routeClass, routeDeadline, class, deadline})
		if got.Class < ceiling.Class || got.Class >= len(three) {
			t.Errorf("class %d, ceiling %d", got.Class, ceiling.Class)
		}
		if got.Deadline <= 0 || got.Deadline > three[got.Class].Deadline {
			t.Errorf("deadline %v in class %d", got.Deadline, got.Class)
		}
		if got.Class == ceiling.Class && got.Deadline > ceiling.Deadline {
			t.Errorf("deadline %v beyond the route's %v", got.Deadline, ceiling.Deadline)
		}
	})
}

func TestClassifyAllocatesNothing(t *testing.T) {
	for _, in := range []Input{{}, {RouteClass: "soon", RouteDeadline: "30s", HeaderClass: "now, later", HeaderDeadline: "2s"}} {
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
		{[]Class{{Name: "B", Bulk: true}}, "classes[0].name: \"B\" is not 1 to 63 of a-z, 0-9, - and _\nclasses[0].deadline: 0s is not between 0 and 1h\nclasses[0].bulk: "},
	} {
		if err := Validate(c.classes); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.classes, err, c.want)
		}
	}
}
