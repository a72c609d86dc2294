package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// cleanInterval is the time between two removals of nodes that ended long ago.
const cleanInterval = time.Hour

// Start begins to write beats and to take leases. If the database is away it does so
// when the database is ready. It fails if the database belongs to another log.
func (n *Node) Start(ctx context.Context) error {
	if n.store.ready() && !n.info.Observer {
		if err := n.identify(ctx); err != nil {
			return err
		}
	}
	n.service.Start()
	n.service.Go(func(ctx, _ context.Context) { n.keepPolling(ctx) })
	if n.clocks != nil {
		n.service.Go(func(ctx, _ context.Context) { n.watchClock(ctx) })
	}
	if n.info.Observer {
		return nil
	}
	n.service.Go(func(ctx, _ context.Context) { n.keepBeating(ctx) })
	n.service.Go(func(ctx, _ context.Context) { n.watchBeat(ctx) })
	n.service.Every(cleanInterval, n.clean)
	return nil
}

// Stop drains the node and removes its row. Work that does not end with ctx loses its
// leases; other nodes take them when this one is dead.
func (n *Node) Stop(ctx context.Context) error {
	err := n.Drain(ctx)
	_ = n.service.Stop(ctx) // returns nil
	if n.info.Observer {
		n.store.close()
		return err
	}
	if err != nil {
		n.mu.Lock()
		for _, s := range n.slots {
			s.lose()
		}
		n.mu.Unlock()
	} else if e := n.store.remove(context.WithoutCancel(ctx), n.info.ID); e != nil {
		n.log.Warn("node not removed from the database: others see it as dead", zap.Error(e))
	}
	n.wake.Publish(topic, "")
	n.store.close()
	return err
}

// Drain implements Member.
func (n *Node) Drain(ctx context.Context) error {
	ctx, cancel := retry.Drain(ctx, drainGrace)
	defer cancel()
	began := time.Now()
	n.mu.Lock()
	first := !n.draining
	n.draining = true
	n.mu.Unlock()
	if !first {
		return n.waitEmpty(ctx)
	}
	n.metrics.drains.Inc()
	// The others learn that this node takes nothing before leases become free.
	if err := n.beat(ctx); err != nil {
		n.log.Debug("drain not announced", zap.Error(err))
	}
	n.mu.Lock()
	count := len(n.slots)
	for _, s := range n.slots {
		s.giveUp()
	}
	n.mu.Unlock()
	err := n.waitEmpty(ctx)
	n.log.Info("drained", zap.Int("leases", count), zap.Duration("took", time.Since(began)), zap.Error(err))
	return err
}

// waitEmpty waits until no slot is left.
func (n *Node) waitEmpty(ctx context.Context) error {
	n.mu.Lock()
	if len(n.slots) == 0 {
		n.mu.Unlock()
		return nil
	}
	if n.empty == nil {
		n.empty = make(chan struct{})
	}
	empty := n.empty
	n.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain: %w", ctx.Err())
	}
}

// pollSoon makes keepPolling poll at once.
func (n *Node) pollSoon() {
	select {
	case n.poke <- struct{}{}:
	default:
	}
}

// identify compares the log of this node with that of the cluster.
func (n *Node) identify(ctx context.Context) error {
	if err := n.announceStart(ctx); err != nil {
		return err
	}
	stored, err := n.store.identify(ctx, n.info)
	if err != nil {
		return fmt.Errorf("read the log of the cluster: %w", err)
	}
	if stored != n.info.LogID { // no node of this cluster
		if err := n.store.remove(ctx, n.info.ID); err != nil {
			n.log.Debug("row of a refused node not removed", zap.Error(err))
		}
	}
	switch {
	case stored == n.info.LogID:
	case n.info.LogID == "":
		return fmt.Errorf("the servers of this database share the log %s, and this one has a journal of its own: set journal.url, or journal.accept_other_log to leave that log", stored)
	case n.info.ReplaceLog:
		return fmt.Errorf("servers of this database still use the log %s: stop them before this one starts with %s; one that was killed counts for 10 s: try again then", stored, n.info.LogID)
	default:
		return fmt.Errorf("the database belongs to a cluster with another log: it has %s, this node has %s; two clusters cannot share a database", stored, n.info.LogID)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.identified = true
	return nil
}

// announceStart writes the row of the node before it reads the log of the cluster, so that
// a node that replaces the log at this moment sees it (ReplaceLog). It takes nothing yet.
func (n *Node) announceStart(ctx context.Context) error {
	n.mu.Lock()
	row := n.row()
	n.mu.Unlock()
	row.takes = []string{}
	if err := n.store.writeBeat(ctx, row); err != nil {
		return fmt.Errorf("write the row of the node: %w", err)
	}
	return nil
}

// waitIdentified returns when the node is one of this cluster, or ctx has ended.
func (n *Node) waitIdentified(ctx context.Context) {
	backoff := retry.Backoff{Min: n.cfg.Beat, Max: 30 * time.Second}
	for {
		n.mu.Lock()
		done := n.identified
		n.mu.Unlock()
		if done || ctx.Err() != nil {
			return
		}
		if err := n.identify(ctx); err != nil && n.store.ready() {
			n.log.Error("cluster registration failed: the node gets no partitions and jobs", zap.Error(err))
		} else if err == nil {
			continue
		}
		backoff.Sleep(ctx)
	}
}

func (n *Node) keepBeating(ctx context.Context) {
	n.waitIdentified(ctx)
	failing := false
	for ctx.Err() == nil {
		err := n.beat(ctx)
		switch {
		case err == nil && failing:
			failing = false
			n.log.Info("beat written again")
			n.pollSoon()
		case err != nil && !failing && ctx.Err() == nil:
			failing = true
			n.log.Warn("beat not written", zap.Error(err))
		}
		retry.Sleep(ctx, n.cfg.Beat)
	}
}

// keepPolling polls at each interval, and when another node gave something up.
func (n *Node) keepPolling(ctx context.Context) {
	n.waitIdentified(ctx)
	woken, cancel := n.wake.Subscribe(topic)
	defer cancel()
	for ctx.Err() == nil {
		if err := n.poll(ctx); err != nil && ctx.Err() == nil {
			n.log.Debug("look at the cluster failed", zap.Error(err))
		}
		// Some jitter, so that nodes do not decide at the same moments for ever.
		timer := time.NewTimer(n.cfg.Beat*3/4 + rand.N(n.cfg.Beat/2))
		select {
		case <-woken:
		case <-n.poke:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// watchBeat gives everything up when the beat is too old.
func (n *Node) watchBeat(ctx context.Context) {
	for {
		n.mu.Lock()
		now := n.clock()
		n.expire(now)
		wait := n.cfg.Beat
		if n.beats.written {
			wait = max(n.beats.at+n.cfg.giveUpAfter()-now, time.Millisecond)
		}
		n.mu.Unlock()
		if !retry.Sleep(ctx, wait) {
			return
		}
	}
}

// clean deletes the rows of nodes that ended more than a day ago.
func (n *Node) clean(ctx context.Context) {
	n.mu.Lock()
	var dead []string
	for id, s := range n.observed.nodes {
		if s.dead {
			dead = append(dead, id)
		}
	}
	n.mu.Unlock()
	if len(dead) == 0 {
		return
	}
	if err := n.store.removeOld(ctx, dead); err != nil {
		n.log.Debug("rows of old nodes not removed", zap.Error(err))
	}
}
