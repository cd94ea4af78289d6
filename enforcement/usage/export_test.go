package usage

// Waiting is how many changes of a feature wait for the transaction that is under way.
func (c *Counters) Waiting(workspace, feature string) int {
	c.queues.mu.Lock()
	defer c.queues.mu.Unlock()
	if q := c.queues.open[queueKey{workspace, feature}]; q != nil {
		return len(q.waiting)
	}
	return 0
}
