/// What is on record of one oplog and one device, and the rule that turns it into a state; pure (spec H7).
package struct DeliveryTrace: Hashable, Sendable {
    /// What was written down about the oplog and this device; nil: it has not happened.
    package struct Record: Hashable, Sendable {
        package var handedOutAt: WallTime?
        /// How often it was given to the app, as far as the device told; 0: not told.
        package var attempts = 0
        /// A rule passed it over.
        package var skipReason: SkipReason?
        package var skippedAt: WallTime?
        /// A threshold passed it over.
        package var discardedAt: WallTime?
        package var confirmedAt: WallTime?
        package var deadAt: WallTime?

        package init() {}
    }

    /// The device as it is now.
    package struct Presence: Hashable, Sendable {
        package var traits: DeviceTraits
        package var hasValidVerdict: Bool
        package var isOwner: Bool
        /// It does not take data of the oplog's business type now.
        package var isSuspended: Bool

        package init(traits: DeviceTraits, hasValidVerdict: Bool, isOwner: Bool, isSuspended: Bool) {
            self.traits = traits
            self.hasValidVerdict = hasValidVerdict
            self.isOwner = isOwner
            self.isSuspended = isSuspended
        }
    }

    /// The oplog; its payload does not matter.
    package var oplog: Oplog
    package var recalledAt: WallTime?
    /// Nil: none, or deleted.
    package var instance: Instance?
    package var configuration: SyncConfiguration?
    package var record = Record()
    /// The receiver's sync point.
    package var syncPoint = OplogID.zero
    /// Nil: not connected.
    package var presence: Presence?
    /// Nil: of no device that is known.
    package var slot: DeviceSlot?

    package init(oplog: Oplog) { self.oplog = oplog }

    /// Where the oplog stands with this device, and since when; the first rule that applies decides.
    package func state(now: WallTime) -> (state: DeliveryState, at: WallTime?) {
        if let at = record.confirmedAt { return (.delivered, at) }
        if let at = record.deadAt { return (.dead, at) }
        if let at = record.handedOutAt {
            if oplog.id <= syncPoint { return (.stored, at) }
            return recalledAt.map { (.recalled, $0) } ?? (.handedOut, at)
        }
        if let slot, !oplog.targeting.share.contains(slot) { return (.outsideStage, nil) }
        if let reason = record.skipReason { return (DeliveryState(reason), record.skippedAt) }
        // The range that a threshold passed over also covers what had gone before.
        if let at = record.discardedAt, at < oplog.validUntil, recalledAt.map({ at < $0 }) ?? true {
            return (.overThreshold, at)
        }
        if let recalledAt { return (.recalled, recalledAt) }
        if oplog.validUntil <= now { return (.expired, oplog.validUntil) }
        if !oplog.isPersistent { return (.notPersisted, oplog.createdAt) }
        // A position beyond it without any record: the records are a few seconds behind.
        if oplog.id <= syncPoint { return (.stored, nil) }
        return waiting
    }

    /// Of what was not given to the device and still can be: the first thing in the way.
    private var waiting: (DeliveryState, WallTime?) {
        if let obstacle = Obstacle(instance: instance, configuration: configuration) {
            return (DeliveryState(obstacle), nil)
        }
        guard let presence, let configuration else { return (.notConnected, nil) }
        if let reason = oplog.targeting.exclusion(of: presence.traits) { return (DeliveryState(reason), nil) }
        if let obstacle = configuration.rules.obstacle(
            isSuspended: presence.isSuspended, isOwner: presence.isOwner, hasValidVerdict: presence.hasValidVerdict)
        {
            return (DeliveryState(obstacle), nil)
        }
        return (configuration.kind.isGlobal && !configuration.isImmediate ? .waitsForForeground : .onItsWay, nil)
    }
}
