package main

import (
	"context"
	"runtime"
	"sync"
)

// onAllCores works on n jobs, as many at once as there are cores, and tells of each in order. It ends with the first
// error, and with ctx, once the jobs that run are done.
func onAllCores[T any](ctx context.Context, n int, work func(i int) (T, error), tell func(i int, t T) error) error {
	type outcome struct {
		t   T
		err error
	}
	outcomes := make([]chan outcome, n)
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		startEach(ctx, &group, n, func(i int) {
			t, err := work(i)
			outcomes[i] <- outcome{t, err}
		})
	})
	for i := range n {
		var o outcome
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o = <-outcomes[i]:
		}
		if o.err == nil {
			o.err = tell(i, o.t)
		}
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

// startEach starts f of 0 to n-1, each as a core is free.
func startEach(ctx context.Context, group *sync.WaitGroup, n int, f func(i int)) {
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		select {
		case <-ctx.Done():
			return
		case free <- struct{}{}:
		}
		group.Go(func() {
			f(i)
			<-free
		})
	}
}
