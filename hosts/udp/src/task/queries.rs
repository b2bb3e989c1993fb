//! Queries: sending, and handling of received messages.

use selvedge::frame;
use selvedge_core::{Member, Span};
use tokio::sync::mpsc::UnboundedSender;

use super::Task;
use crate::NodeEvent;
use crate::query::{self, Arrived, KIND, Query};
use crate::service::{Answer, Reject};

impl Task {
    /// Asks all live members. Returns them.
    pub(super) fn query(
        &mut self,
        payload: &[u8],
        wait: Span,
        answers: UnboundedSender<(Member, Box<[u8]>)>,
    ) -> Result<Box<[Member]>, Reject> {
        let membership = self.driver.machine().membership();
        let me = membership.me();
        let others = membership.members().filter(|it| it.status.is_live());
        let others = others.map(|it| it.member).filter(|it| it.id != me.id);
        let members: Box<[Member]> = [me].into_iter().chain(others).collect();
        let question = self.queries.ask(
            (me, self.clock.now()),
            (payload, wait, self.frame_budget),
            members.iter().copied(),
            answers,
        )?;
        self.emit(NodeEvent::Question(question));
        Ok(members)
    }

    /// Sends the questions that are due.
    pub(super) async fn ask_again(&mut self) {
        let membership = self.driver.machine().membership();
        let me = membership.me();
        let is_listed = |member: Member| {
            let listed = membership.member(member.id);
            member == me || listed.is_some_and(|it| it.member == member && it.status.is_live())
        };
        let due = self.queries.due((me, self.clock.now()), is_listed);
        for (to, question) in due {
            self.send_query(to, &question).await;
        }
    }

    /// Answers a question for the application.
    pub(super) async fn answer_query(
        &mut self,
        question: (Member, u64),
        payload: &[u8],
    ) -> Result<Answer, Reject> {
        let me = self.driver.machine().membership().me();
        let (now, payload) = (self.clock.now(), (payload, self.frame_budget));
        if let Some(answer) = self.queries.answer((me, now), question, payload)? {
            self.send_query(question.0, &answer).await;
        }
        Ok(Answer::Done)
    }

    /// Handles a message of another node: of a live member, in the life that this node lists.
    pub(super) async fn on_query(&mut self, from: Member, message: Query) {
        let membership = self.driver.machine().membership();
        let me = membership.me();
        let listed = membership.member(from.id);
        if from.id == me.id || !listed.is_some_and(|it| it.member == from && it.status.is_live()) {
            return self.traffic.untimely.add(1);
        }
        let now = self.clock.now();
        match message {
            Query::Question {
                number,
                left,
                payload,
            } => match (self.queries).on_question((from, now), (number, left), &payload) {
                Arrived::New(question) => self.emit(NodeEvent::Question(question)),
                Arrived::Answered(answer) => self.send_query(from, &answer).await,
                Arrived::Waits => {}
                Arrived::Full => self.traffic.questions_dropped.add(1),
            },
            Query::Answer {
                life,
                number,
                payload,
            } => {
                if !query::is_for(me, life) || !self.queries.on_answer(from, number, &payload) {
                    self.traffic.untimely.add(1);
                }
            }
        }
    }

    async fn send_query(&mut self, to: Member, message: &Query) {
        let Some(address) = self.directory.get(to.id) else {
            return self.traffic.unknown_destination.add(1);
        };
        let from = self.driver.machine().membership().me();
        if frame::encode(from, message, self.frame_budget, &mut self.frame).is_err() {
            return self.traffic.too_long.add(1);
        }
        self.send_frame(KIND, address).await;
    }
}
