package guard

// Held is how many keys the lock remembers.
func (l *ProcessLock[Tx]) Held() int {
	l.keys.mu.Lock()
	defer l.keys.mu.Unlock()
	return len(l.keys.turns)
}
