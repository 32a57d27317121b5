package extproc

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/classify"
	replicas "github.com/weirproxy/weir/pkg/pool" // the package has a pool of its own
	"github.com/weirproxy/weir/pkg/route"
	weirv1 "github.com/weirproxy/weir/proto/weir/v1"
)

// TestRecordIsTheProto holds the Struct that Envoy gets to proto/weir/v1, whose names and kinds are the contract: each
// record reads as a Decision and back, and each field of a Decision is in some record.
func TestRecordIsTheProto(t *testing.T) {
	seen := map[string]bool{}
	for name, d := range decisions(t) {
		got := toMap(t, record(d))
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var p weirv1.Decision
		if err := protojson.Unmarshal(text, &p); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if err := json.Unmarshal(again, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the record is\n%v\nand as a Decision\n%v", name, got, want)
		}
		for field := range got {
			seen[field] = true
		}
	}
	fields := (&weirv1.Decision{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := string(fields.Get(i).Name()); !seen[f] {
			t.Errorf("no record has the field %s", f)
		}
	}
	if len(seen) != fields.Len() {
		t.Errorf("records have %d fields, and a Decision %d", len(seen), fields.Len())
	}
}

func toMap(t *testing.T, s *structpb.Struct) map[string]any {
	t.Helper()
	text, err := protojson.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// decisions has at least one Decision of each Outcome, made by a router where a router makes it.
func decisions(t *testing.T) map[string]*route.Decision {
	t.Helper()
	cfg, _ := replicas.Default(replicas.DefaultProfile)
	cfg.Seats = 2
	rc := route.Default()
	rc.Classes[0].MaxHeld, rc.Classes[1].MaxHeld = 1, 2
	r := route.New(rc, replicas.New("replicas", []string{"10.0.0.1:1", "10.0.0.2:1"}, cfg))
	now := time.Unix(1000, 0)
	chat := &route.Request{Path: "/v1/chat/completions", Body: []byte(chatOfBlocks(20))}
	all := map[string]*route.Decision{}
	for _, name := range []string{"answered", "warm", "second warm", "unanswered", "held", "late", "full"} {
		q := *chat
		if name == "late" {
			q.Class = classify.Input{HeaderDeadline: "1ms", HeaderClass: "bulk"}
		}
		all[name] = r.Route(now, &q)
		now = now.Add(time.Millisecond)
	}
	all["shed"] = shed(t)
	all["unread"] = route.New(route.Default(), replicas.New("p", []string{"[::1]:1"}, cfg)).Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte("{")})
	all["no replica"] = route.New(route.Default(), replicas.New("none", nil, cfg)).Route(now, chat)
	now = now.Add(time.Second)
	r.Done(now, all["answered"], route.Answered)
	r.Done(now, all["unanswered"], route.Unanswered)
	r.Release(now.Add(time.Minute))
	r.Done(now, all["held"], route.Failed)
	for _, o := range []route.Outcome{route.LeftBody, route.TooLarge, route.NoMemory, route.Tunnel, route.NoPool, route.Failed} {
		all[o.String()] = route.Unrouted("replicas", now, o)
	}
	outcomes := map[string]bool{}
	for d := range maps.Values(all) {
		outcomes[verdict(d)] = true
	}
	for _, v := range []string{"picked", "late", "shed", "full", "too_large", "no_memory", "tunnel", "no_replica", "no_pool"} {
		if !outcomes[v] {
			t.Errorf("no decision %q", v)
		}
	}
	return all
}

// shed is a decision against a request that would be late: behind so many others that a replica of one seat takes a tenth of
// a second for each.
func shed(t *testing.T) *route.Decision {
	t.Helper()
	cfg, _ := replicas.Default(replicas.DefaultProfile)
	cfg.Seats = 1
	r := route.New(route.Default(), replicas.New("replicas", []string{"10.0.0.1:1"}, cfg))
	now := time.Unix(1000, 0)
	var all []*route.Decision
	for i := 0; len(all) < 2000; i++ {
		d := r.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatOfBlocks(2))})
		if d.Outcome == route.Shed {
			return d
		}
		all = append(all, d)
		if i%4 == 0 { // four come for one that goes
			r.Done(now, all[i/4], route.Answered)
			r.Release(now)
			now = now.Add(time.Second / 10)
		}
	}
	t.Fatal("nobody is shed")
	return nil
}

func chatOfBlocks(n int) string {
	text := make([]byte, n*64)
	for i := range text {
		text[i] = 'a' + byte(i/64)
	}
	return `{"model": "m", "messages": [{"role": "user", "content": "` + string(text) + `"}]}`
}
