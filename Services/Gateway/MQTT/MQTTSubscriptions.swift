import MQTT

/// The subscriptions of one MQTT client, and the Sync IDs that are suspended because none matches them; pure.
struct MQTTSubscriptions {
    /// The result of a suspension.
    enum Suspension {
        /// All Sync IDs were suspended already.
        case unchanged
        /// The gateway needs the new set.
        case changed
        /// The client leaves more Sync IDs without a subscription than the limit permits.
        case tooMany(limit: Int)
    }

    /// Maximum of topic filters.
    private static let filtersMax = 200
    /// Maximum of Sync IDs that a client can leave without a subscription.
    private static let suspendedMax = 200

    /// By the text of the filter.
    private var filters: [String: (filter: MQTTTopicFilter, qualityOfService: UInt8)] = [:]
    /// The client has sent its first SUBSCRIBE. Before that it receives no data.
    private(set) var hasSubscribed = false
    private(set) var suspended: Set<String> = []

    /// Adds the subscriptions of a SUBSCRIBE packet, and ends the suspension of the Sync IDs that match them.
    ///
    /// - Returns: the reason for each subscription, in order.
    mutating func add(_ subscriptions: [MQTTSubscription]) -> [MQTTReason] {
        let reasons = subscriptions.map { add($0) }
        suspended = suspended.filter { !accepts($0) }
        hasSubscribed = true
        return reasons
    }

    private mutating func add(_ subscription: MQTTSubscription) -> MQTTReason {
        guard let filter = MQTTTopicFilter(subscription.filter) else { return .topicFilterInvalid }
        guard !filter.isShared else { return .sharedSubscriptionsNotSupported }
        guard filters.count < Self.filtersMax || filters[filter.text] != nil else { return .quotaExceeded }
        let granted = min(subscription.qualityOfService, 1)
        filters[filter.text] = (filter, granted)
        return granted == 1 ? .grantedQoS1 : .success
    }

    /// Removes the subscriptions with these filters.
    ///
    /// - Returns: the reason for each filter, in order.
    mutating func remove(_ names: [String]) -> [MQTTReason] {
        names.map { filters.removeValue(forKey: $0) == nil ? .noSubscriptionExisted : .success }
    }

    /// Adds Sync IDs to the suspended ones, also beyond the limit.
    mutating func suspend(_ bizTypes: Set<String>) -> Suspension {
        let known = suspended.count
        suspended.formUnion(bizTypes)
        if suspended.count > Self.suspendedMax { return .tooMany(limit: Self.suspendedMax) }
        return suspended.count > known ? .changed : .unchanged
    }

    /// The highest quality of service of the subscriptions that match a topic; nil: no subscription matches.
    func grantedQuality(for topic: String) -> UInt8? {
        filters.values.filter { $0.filter.matches(topic) }.map(\.qualityOfService).max()
    }

    /// Whether the client has subscribed to data of a Sync ID or to its recalls.
    func accepts(_ bizType: String) -> Bool {
        grantedQuality(for: bizType) != nil || grantedQuality(for: Self.recallTopic(bizType)) != nil
    }

    /// The topic of the recalls of a Sync ID.
    static func recallTopic(_ bizType: String) -> String { "\(bizType)/recall" }
}
