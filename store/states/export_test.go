package states

// RepairBatch is the number of rows that one write puts right.
const RepairBatch = repairBatch

// FirstRepairs returns how many of the rows one write puts right.
func FirstRepairs(list []Repair) int { return firstRepairs(list) }
