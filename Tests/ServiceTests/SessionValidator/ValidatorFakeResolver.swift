import NIOCore
import ServiceKit
import Synchronization

@testable import SessionValidator
@testable import TenantCalls

/// A DNS resolver with answers of the test: for each name its answers in turn, then the last one again.
final class FakeResolver: HostResolving {
    private let answers: Mutex<[String: ArraySlice<[IPAddress]>]>
    private let lookups = Mutex(0)

    init(_ answers: [String: [[String]]]) {
        self.answers = Mutex(answers.mapValues { $0.map { $0.compactMap { IPAddress($0) } }[...] })
    }

    /// The number of lookups.
    var count: Int { lookups.withLock { $0 } }

    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]> {
        lookups.withLock { $0 += 1 }
        return loop.makeSucceededFuture(
            answers.withLock { answers in
                guard let first = answers[host]?.first else { return [] }
                if answers[host]?.count ?? 0 > 1 { answers[host]?.removeFirst() }
                return first
            })
    }
}
