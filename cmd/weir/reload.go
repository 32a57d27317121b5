package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/pkg/admin"
	"github.com/weirproxy/weir/pkg/bootstrap"
	"github.com/weirproxy/weir/pkg/config"
	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/route"
)

// reloader takes the policy of changed files to what runs: whole, or not at all.
type reloader struct {
	files  bootstrap.Files
	policy *bootstrap.Bootstrap // in force
	watch  *watch
	hangup <-chan os.Signal
	log    *slog.Logger

	routers map[string]*route.Router
	adm     *admin.Admin
	edge    *extproc.Server

	ok, unchanged, refused atomic.Int64
	loaded                 atomic.Int64 // when the policy came into force, in Unix nanoseconds
}

// run reloads until ctx ends, one reload at a time.
func (r *reloader) run(ctx context.Context) { r.watch.run(ctx, r.hangup, r.reload) }

func (r *reloader) reload() {
	next, changed, err := bootstrap.Reload(r.policy, r.files)
	switch {
	case err != nil:
		for _, fault := range config.Faults(err) {
			r.log.Error("reload refused, the policy stays as it was", "fault", bounded(fault.Error()))
		}
		r.refused.Add(1)
	case len(changed) == 0:
		r.log.Debug("reload: nothing of the policy changed")
		r.unchanged.Add(1)
	default:
		r.swap(next)
		r.log.Info("policy reloaded", "changed", strings.Join(changed, ", "))
		r.ok.Add(1)
	}
}

// swap has every part take the policy. The series come first: a request may end in a new class at once.
func (r *reloader) swap(next *bootstrap.Bootstrap) {
	now := time.Now()
	var classes []string
	for _, c := range next.Policy.Route.Classes {
		classes = append(classes, c.Name)
	}
	r.adm.Classes(classes)
	r.edge.Configure(next.Policy.Edge)
	for name, one := range r.routers {
		one.Configure(now, next.Policy.Route)
		r.edge.Wake(name) // those held may go now
	}
	r.policy = next
	r.loaded.Store(now.UnixNano())
}

// count puts the reloads on the metrics page.
func (r *reloader) count() {
	r.adm.Counters("weir_reloads_total", "Reloads of the policy. unchanged: the files said the same; refused: a fault, or a change that needs a restart.", []string{"result"}, func(emit admin.Emit) {
		emit(float64(r.ok.Load()), "ok")
		emit(float64(r.unchanged.Load()), "unchanged")
		emit(float64(r.refused.Load()), "refused")
	})
	r.adm.Gauges("weir_policy_loaded_timestamp_seconds", "When the policy in force was loaded, in Unix time.", nil, func(emit admin.Emit) {
		emit(time.Duration(r.loaded.Load()).Seconds())
	})
}

// maxFault is the most of a fault's text, in bytes, that is logged: it quotes what stands in the file.
const maxFault = 500

func bounded(text string) string {
	if len(text) <= maxFault {
		return text
	}
	return strings.ToValidUTF8(text[:maxFault], "") + "..."
}
