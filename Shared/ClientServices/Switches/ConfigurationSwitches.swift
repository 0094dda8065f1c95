public import Foundation
import Synchronization

/// Values that the server sets for this app, by key: what it last said holds, offline and after restarts too.
///
/// Reading is from memory and never fails: an app gives the value that it wants when the server has said nothing, or
/// something of another type.
public final class ConfigurationSwitches: PushReceiver {
    /// The Sync ID that the switches are pushed under, unless the app's backend has another: a global configuration.
    public static let syncID = "MSS_SWITCHES"
    private static let key = "set"

    private let store: ServiceStore
    private let now: @Sendable () -> Date
    private let state: Mutex<SwitchSet>
    private let listeners = Listeners<SwitchNews>()

    /// Reads what was last good.
    ///
    /// - Throws: `ClientServiceError.store`.
    public init(store: ServiceStore, now: @escaping @Sendable () -> Date = { Date() }) throws(ClientServiceError) {
        self.store = store
        self.now = now
        let known = try store.read("reading the switches") { items in
            try items.body(.switches, key: Self.key).map { try JSONDecoder().decode(SwitchSet.self, from: $0) }
        }
        state = Mutex(known ?? SwitchSet())
    }

    /// Takes a full set or changes; listeners hear of it once it is on the disk.
    ///
    /// - Throws: `ClientServiceError.store`; what was last good holds.
    public func take(_ payload: [UInt8], userID: String? = nil) throws(ClientServiceError) -> PushOutcome {
        let push: SwitchPush
        do { push = try SwitchPush(payload) } catch { return .refused(error.reason) }
        let taken = try store.write(
            "storing the switches",
            { items in
                var set = state.withLock { $0 }
                let result = Result { () throws(PushFault) in
                    try set.take(push, now: now().milliseconds)
                }
                if case .success(_?) = result {
                    try items.put(try JSONEncoder().encode(set), .switches, key: Self.key)
                }
                return (result, set)
            }, committed: { _, set in state.withLock { $0 = set } })
        switch taken.0 {
        case .success(let changed?):
            listeners.send(.fetched(version: push.version))
            if !changed.isEmpty { listeners.send(.changed(keys: changed)) }
            return .applied
        case .success(nil): return .known
        case .failure(let fault): return .refused(fault.reason)
        }
    }

    /// The version of the last good push; nil: the server has said nothing so far.
    public var version: Int64? { state.withLock { $0.version == 0 ? nil : $0.version } }
    /// When the last good push came, by the device's clock.
    public var fetchedAt: Date? {
        state.withLock { $0.version == 0 ? nil : Date(timeIntervalSince1970: Double($0.fetchedAt) / 1_000) }
    }
    /// All that are set.
    public var values: [String: SwitchValue] { state.withLock { $0.values } }

    /// News from now on; a listener that is more than 64 behind loses the oldest.
    public var news: AsyncStream<SwitchNews> { listeners.listen() }

    /// What a switch is set to; nil: to nothing.
    public func value(_ key: String) -> SwitchValue? { state.withLock { $0.values[key] } }

    /// A text; the default when the switch is not set, or to something else.
    public func text(_ key: String, default fallback: String) -> String {
        if case .text(let text) = value(key) { text } else { fallback }
    }

    /// True or false; the default when the switch is not set, or to something else.
    public func bool(_ key: String, default fallback: Bool) -> Bool {
        if case .bool(let bool) = value(key) { bool } else { fallback }
    }

    /// A number; the default when the switch is not set, or to something else.
    public func number(_ key: String, default fallback: Double) -> Double {
        if case .number(let number) = value(key) { number } else { fallback }
    }

    /// A whole number; the default when the switch is not set, or to something else, such as 0.5.
    public func integer(_ key: String, default fallback: Int) -> Int {
        if case .number(let number) = value(key) { Int(exactly: number) ?? fallback } else { fallback }
    }

    /// An object of the app's own; the default when the switch is not set, or to what does not fit the type.
    public func object<Value: Decodable>(_ key: String, default fallback: Value) -> Value {
        guard let value = value(key), let json = try? JSONEncoder().encode(value) else { return fallback }
        return (try? JSONDecoder().decode(Value.self, from: json)) ?? fallback
    }
}
