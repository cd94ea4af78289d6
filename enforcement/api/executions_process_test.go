package api_test
import "io"
const jobVariable = "HEADROOM_API_TEST_JOB"
func worker(job string, out io.Writer) int { return 0 }
