import Concurrency
public import Foundation
public import MobileSync

/// Values by key that the server sets for this app. The last valid values stay in effect offline and after restarts
/// (SVC5).
///
/// Reading is from memory and never fails: the app passes a default, which applies when the switch is not set or has
/// another type.
public final class ConfigurationSwitches: PushReceiver {
    /// The default Sync ID of switch pushes. It needs a global configuration.
    public static let syncID = "MSS_SWITCHES"
    private static let key = "set"

    private let store: ServiceStore
    private let now: @Sendable () -> Date
    private let state: LockedValue<SwitchSet>
    private let listeners = EventBroadcaster<ConfigurationSwitchChange>(buffer: ServiceLimits.unreadElements)

    /// Opens the switches and reads the stored values.
    ///
    /// - Throws: `ClientServiceError.store`.
    public init(store: ServiceStore, now: @escaping @Sendable () -> Date = { Date() }) throws(ClientServiceError) {
        self.store = store
        self.now = now
        let known = try store.read("reading the switches") { items in
            try items.body(.switches, key: Self.key).map { try JSONDecoder().decode(SwitchSet.self, from: $0) }
        }
        state = LockedValue(known ?? SwitchSet())
    }

    /// Applies a full set or changes. Listeners are notified after the commit.
    ///
    /// - Throws: `ClientServiceError.store`; the former values then stay in effect.
    public func take(_ payload: [UInt8], userID: String? = nil) throws(ClientServiceError) -> PushOutcome {
        let push: SwitchPush
        do { push = try SwitchPush(payload) } catch { return .refused(error.reason) }
        let applied = try store.write(
            "storing the switches",
            { items in
                var set = state.withLock { $0 }
                let result = Result { () throws(PushFault) in
                    try set.apply(push, now: now().milliseconds)
                }
                if case .success(_?) = result {
                    try items.put(try JSONEncoder().encode(set), .switches, key: Self.key)
                }
                return (result, set)
            }, committed: { _, set in state.withLock { $0 = set } })
        switch applied.0 {
        case .success(let changed?):
            listeners.send(.fetched(version: push.version))
            if !changed.isEmpty { listeners.send(.changed(keys: changed)) }
            return .applied
        case .success(nil): return .known
        case .failure(let fault): return .refused(fault.reason)
        }
    }

    /// The version of the last valid push; nil when none has arrived.
    public var version: Int64? { state.withLock { $0.version == 0 ? nil : $0.version } }
    /// The time at which the last valid push arrived, by the device's clock; nil when none has arrived.
    public var fetchedAt: Date? {
        state.withLock { $0.version == 0 ? nil : Date(timeIntervalSince1970: Double($0.fetchedAt) / 1_000) }
    }
    /// All switches that are set.
    public var values: [String: JSONValue] { state.withLock { $0.values } }

    /// A new stream of changes. A reader that is more than 64 elements behind loses the oldest.
    public var news: AsyncStream<ConfigurationSwitchChange> { listeners.listen() }

    /// The value of a switch; nil when it is not set.
    public func value(_ key: String) -> JSONValue? { state.withLock { $0.values[key] } }

    /// A text; the default when the switch is not set or has another type.
    public func text(_ key: String, default fallback: String) -> String {
        if case .text(let text) = value(key) { text } else { fallback }
    }

    /// A Boolean; the default when the switch is not set or has another type.
    public func bool(_ key: String, default fallback: Bool) -> Bool {
        if case .boolean(let flag) = value(key) { flag } else { fallback }
    }

    /// A number; the default when the switch is not set or has another type.
    public func number(_ key: String, default fallback: Double) -> Double {
        value(key)?.double ?? fallback
    }

    /// An integer; the default when the switch is not set, has another type or is not whole, such as 0.5.
    public func integer(_ key: String, default fallback: Int) -> Int {
        value(key)?.wholeNumber.flatMap { Int(exactly: $0) } ?? fallback
    }

    /// A value of a type of the app; the default when the switch is not set or cannot be decoded as the type.
    public func object<Value: Decodable>(_ key: String, default fallback: Value) -> Value {
        guard let value = value(key), let json = try? JSONEncoder().encode(value) else { return fallback }
        return (try? JSONDecoder().decode(Value.self, from: json)) ?? fallback
    }
}
