import Hummingbird
import Logging
import NIOCore

/// What Hummingbird knows of a request beside its head.
struct ConsoleContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The other side's address, without its port.
    let source: String

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        self.source = source.channel.remoteAddress?.ipAddress ?? ""
    }
}
