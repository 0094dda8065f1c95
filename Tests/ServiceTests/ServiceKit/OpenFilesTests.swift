import Glibc
import Testing

@testable import ServiceKit
@testable import SessionValidator
@testable import TenantCalls

@Suite("Open files")
struct OpenFilesTests {
    @Test("SEC12: a process may have as many connections as the system lets its user have") func raised() async {
        await #expect(processExitsWith: .success) {
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            var limits = rlimit()
            getrlimit(resource, &limits)
            limits.rlim_cur = 128
            setrlimit(resource, &limits)
            OpenFiles.raiseLimit()
            let hard = Int(clamping: limits.rlim_max)
            exit(hard > 128 && OpenFiles.limit == hard ? 0 : 1)
        }
    }

    @Test(
        "SEC12: a validator's calls fit into what it may have open",
        arguments: [(1_024, 512), (4_096, 3_584), (1_048_576, 4_096), (Int.max, 4_096), (256, 64)])
    func calls(openFiles: Int, callsMax: Int) {
        #expect(TenantConnections.callsMax(openFiles: openFiles) == callsMax)
    }
}
