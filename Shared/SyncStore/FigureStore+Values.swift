package import SyncModel

// What the queries answer.
extension FigureStore {
    /// What a user or device was sent in the last 30 days.
    package struct Figures: Hashable, Sendable {
        package var pushes: Int64
        /// Those that at least one device has confirmed.
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
        /// When it became a push of this target: accepted, or of a global one, pulled.
        package var notedAt: WallTime
        /// Nil: it has not gone out.
        package var firstHandedOutAt: WallTime?
        /// Nil: no device has confirmed it.
        package var arrivedAt: WallTime?
        /// Names this line, to go on from.
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
        /// Its begin.
        package var day: WallTime
        package var pushes: Int64
        /// Of the day's pushes, whenever they arrived.
        package var arrivals: Int64
        /// Given up on that day and not confirmed since, counted per device.
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
        /// Nil: one that no push can name.
        package var operatingSystem: OperatingSystem?
        /// Empty: none that can be compared.
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
        /// What arrived in this time, whenever it was accepted.
        package var arrivals: ArrivalTimes

        package init(begin: WallTime, pushes: Int64, arrivals: ArrivalTimes) {
            self.begin = begin
            self.pushes = pushes
            self.arrivals = arrivals
        }
    }

    /// How many devices were connected.
    package struct Connected: Hashable, Sendable {
        package var begin: WallTime
        /// In the step's fullest minute.
        package var devices: Int64

        package init(begin: WallTime, devices: Int64) {
            self.begin = begin
            self.devices = devices
        }
    }
}
