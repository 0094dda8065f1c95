package import SyncModel

// The values that the queries return.
extension FigureStore {
    /// Pushes to a user or device in the last 30 days, and their arrivals.
    package struct Figures: Hashable, Sendable {
        package var pushes: Int64
        /// The pushes that at least one device has confirmed.
        package var arrivals: Int64

        package init(pushes: Int64, arrivals: Int64) {
            self.pushes = pushes
            self.arrivals = arrivals
        }
    }

    /// One line of a push list.
    package struct Push: Hashable, Sendable {
        package var bizType: BizType
        package var kind: ChannelKind
        package var oplogID: OplogID
        /// When it became a push of this target: accepted, or, for a global push, pulled.
        package var notedAt: WallTime
        /// A nil value means: there was no hand-out yet.
        package var firstHandedOutAt: WallTime?
        /// A nil value means: no device has confirmed it.
        package var arrivedAt: WallTime?
        /// The place of this line; the next page begins after it.
        package var cursor: PushCursor

        package init(
            bizType: BizType, kind: ChannelKind, oplogID: OplogID, notedAt: WallTime, firstHandedOutAt: WallTime? = nil,
            arrivedAt: WallTime? = nil, cursor: PushCursor
        ) {
            self.bizType = bizType
            self.kind = kind
            self.oplogID = oplogID
            self.notedAt = notedAt
            self.firstHandedOutAt = firstHandedOutAt
            self.arrivedAt = arrivedAt
            self.cursor = cursor
        }
    }

    /// An instance's figures of one day.
    package struct Day: Hashable, Sendable {
        /// The begin of the day.
        package var day: WallTime
        package var pushes: Int64
        /// Arrivals of the day's pushes, at any later time.
        package var arrivals: Int64
        /// Dead letters of that day that were not confirmed since, counted per device.
        package var deadLetters: Int64

        package init(day: WallTime, pushes: Int64, arrivals: Int64, deadLetters: Int64) {
            self.day = day
            self.pushes = pushes
            self.arrivals = arrivals
            self.deadLetters = deadLetters
        }
    }

    /// Hand-outs to devices of one kind.
    package struct Traits: Hashable, Sendable {
        /// A nil value means: a system that no push can name.
        package var operatingSystem: OperatingSystem?
        /// Empty: not comparable.
        package var appVersion: String
        package var handedOut: Int64
        package var confirmed: Int64

        package init(operatingSystem: OperatingSystem? = nil, appVersion: String, handedOut: Int64, confirmed: Int64) {
            self.operatingSystem = operatingSystem
            self.appVersion = appVersion
            self.handedOut = handedOut
            self.confirmed = confirmed
        }
    }

    /// Figures of one step of a chart.
    package struct Step: Hashable, Sendable {
        package var begin: WallTime
        package var pushes: Int64
        /// Arrivals in this time, of pushes from any time.
        package var arrivals: ArrivalTimes

        package init(begin: WallTime, pushes: Int64, arrivals: ArrivalTimes) {
            self.begin = begin
            self.pushes = pushes
            self.arrivals = arrivals
        }
    }

    /// The number of connected devices.
    package struct Connected: Hashable, Sendable {
        package var begin: WallTime
        /// The maximum over the minutes of the step.
        package var devices: Int64

        package init(begin: WallTime, devices: Int64) {
            self.begin = begin
            self.devices = devices
        }
    }
}
